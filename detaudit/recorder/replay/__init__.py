"""Repeat one operation of a trace in a process of its own: ``python recorder/replay REQUEST.json``.

The line ``call`` of an instrumentation log (see wire.py), written if ENV_WATCH has ``call`` and the inputs are no more
bytes, has the operation: ``framework, op, obstacle, detail``, where ``obstacle`` says why it cannot be saved
(``too-large``, ``argument``, ``random``, ``library`` or ``variable``), or ``framework, op, backward, settings, python,
path``, of which the last two are the interpreter and its sys.path, and

- of torch, ``storages`` with ``{file, bytes, device, dtype}`` for the memory of tensors, and ``args`` and ``kwargs``,
  JSON in which an object with one key is a value of that kind. A ``float`` is text, a ``tensor`` is ``{storage, dtype,
  shape, stride, offset, bits}``, where ``bits`` are those of conj and neg. ``modules`` and ``libraries`` are those that
  define the operation.
- of TensorFlow, ``node``, the message NodeDef as text, and ``inputs`` with ``{kind, file, dtype, shape}``: a ``value``,
  or a ``variable`` with its value.

Lines ``noted`` have the calls of one step of torch, for `detaudit ops --script`: ``op, dtype, count, storages,
backward, file, line, args, kwargs``. It is a call that the step made ``count`` times with the same shapes, options and
integers, first on that line. The memory is the part that tensors of the call are in; the ``file`` of a storage is empty
if more than ``bytes`` of ENV_WATCH had to be saved. After them a line ``step`` has ``step, complete, left_out,
compiled, settings``: whether the step was over, ``[reason, op, calls]`` of what is not repeated (see LeftOut in
model/operations.py), how many functions torch.compile had compiled, and the settings of torch.

A request has the ``call``, the ``folder`` of its files, the ``condition`` (``threads``, 0 for as many as recorded;
``fills``, the bytes that new memory is filled with in turn; ``deterministic``; ``load``, how many processes of the
script ``busy`` run beside it; the ``place`` of the output that counts), how many ``repeats``, and how many ``seconds``
those of one pass may take. Its ``result`` is ``{threads, own, gradient}``, where each pass has ``{counts, error}``, and
``counts`` says for each byte, in hexadecimal, how often each digest came out; or it is ``{failed}``, an error.
"""
