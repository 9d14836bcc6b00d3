"""The contract between the auditor and the recorder: variable names and the layout of a trace.

Only environment variables go into a run, only trace files come out of it. The recorder loads this
file in the environment that trains, so it keeps to the standard library and to Python 3.9.

A trace is one append-only JSON-lines file for each process, named ``<pid>.<n>.jsonl``. Every line
is an object whose ``k`` tells its kind:

- ``hello``      ``schema, pid, ppid, argv, python, rank, identity``: the recorder is loaded. ``argv``
  is the interpreter's own command line, ``rank`` the launcher's RANK or null, ``identity`` the
  numbers that multiprocessing gave this process ([] in a process it did not start).
- ``identity``   ``identity``: the same, in a process that learned it later.
- ``framework``  ``name, version``: an ML framework was imported.
- ``flag``       ``id, state, detail``: a recipe flag was ``applied`` or ``failed``.
- ``source``     ``what, file, line, value``: the script seeded a generator there; ``value`` is the seed as
  text, ``""`` where it gave none.
- ``event``      ``fw, step, stage, digest, value``: what one stage of one step was. ``value`` is the
  loss at stage ``forward``, else null.
- ``final``      ``fw, steps, digest, sum, loss, params, sparse, devices``: the weights as they ended, whether
  they were too large to digest at every step, and where they live. The last one of a process and framework counts.
- ``trouble``    ``where, error``: the recorder failed there, and the script went on.
- ``bye``        ``how``: the process ended in order. A file without it was cut off.

Floats travel as ``float.hex()`` text, so that every bit arrives and NaN has a spelling.
"""

# Schema history. 1: first layout.
SCHEMA = 1

ENV_TRACE = "DETAUDIT_TRACE"
"""The folder into which each process writes its trace."""

ENV_MARK = "DETAUDIT_MARK"
"""A value that is unique to the audit; it finds processes that left their process group."""

ENV_FLAGS = "DETAUDIT_FLAGS"
"""The flags to apply in the process: one ``module<TAB>JSON object`` a line, in order.

The object has ``id`` and one or more of ``call`` ({dotted name: [arguments]}), ``set`` ({dotted
name: value}), ``patch`` (a name in recorder/patches.py) with ``seed``. The module stands before the JSON so
that a process which never imports it never pays for parsing.
"""

ENV_STAGES = "DETAUDIT_STAGES"
"""The stages to record, joined by commas; DEFAULT_STAGES where it is not set."""

TRACE_SUFFIX = ".jsonl"

FLAG_APPLIED = "applied"
FLAG_FAILED = "failed"

STAGES = ("init", "rng", "batch", "forward", "backward", "update")
"""The ladder: within one step, the first stage that differs names the cause."""

DEFAULT_STAGES = ("init", "rng", "batch", "forward", "update")
"""Digesting the gradients costs about as much as digesting the weights: they are recorded when asked for."""
