"""Find out whether ML training is deterministic, what makes it so, and where runs diverge.

A script can call the functions below: ``record`` and ``record_weights`` for a training that detaudit cannot hook, the
``monitor`` functions to find where runs diverge. Outside an audit, each call costs one lookup and returns its argument.
Inside an audit, a call never raises; the report of the audit shows its failure.
"""

import sys as _sys
from typing import TypeVar as _TypeVar

__version__ = "0.1.0"

_T = _TypeVar("_T")


def record(*, step: "int | None" = None, loss: object = None, weights: object = None) -> None:
    """Record the end of a training step.

    ``step`` is its number, which starts at 1 and increases; without it, calls are counted. ``loss`` is a number or an
    array with one element. ``weights`` is an array, a number, or a list, tuple or dict of them, nested at will; arrays
    may be NumPy, torch, JAX, or anything else that NumPy can read. Without weights, an audit can find that runs differ,
    but not that they match.
    """
    script = _sys.modules.get("_detaudit.recorder.training.record")
    if script is not None:
        script.record(step, loss, weights)


def record_weights(model: object) -> None:
    """Record the end of a training step, with the present weights of ``model``.

    ``model`` is a Keras model or layer, a torch module, or anything that ``record(weights=…)`` accepts. This works
    inside a ``tf.function``, unless XLA compiles it.
    """
    probes = _sys.modules.get("_detaudit.recorder.probes")
    if probes is not None:
        probes.record_weights(model)


def monitor(x: _T, name: str) -> _T:
    """Record the value of ``x`` and its gradient, and return ``x``.

    ``x`` is None, a bool, a number, a string, bytes, a tensor or an array (torch, TensorFlow, NumPy, or anything that
    NumPy can read), or a list, tuple, named tuple or dict of them, whose parts are recorded as ``name[0]``,
    ``name.field`` or ``name['key']``. The returned object is ``x`` itself, except for TensorFlow tensors that may get a
    gradient: they are returned as identities, in a structure of the same types.

    Inside a ``tf.function``, tensors are recorded whenever it runs, and constants when it is traced. In a function that
    XLA compiles, nothing is recorded. ``torch.compile`` breaks its graph at this call; with ``fullgraph=True``, which
    rules that out, nothing is recorded.
    """
    probes = _sys.modules.get("_detaudit.recorder.probes")
    return x if probes is None else probes.monitor(x, name)


def monitor_gradients(grads_and_vars: _T) -> _T:
    """Record each gradient under the name of its variable, and return the pairs.

    The pairs are ``(gradient, variable)`` as in TensorFlow, or ``(name, parameter)`` as from ``named_parameters()`` of
    torch, with the gradient in ``parameter.grad``. For an iterator, a new iterator over the same pairs is returned.
    """
    probes = _sys.modules.get("_detaudit.recorder.probes")
    return grads_and_vars if probes is None else probes.monitor_gradients(grads_and_vars)


def monitor_layer(layer: _T, name: str = "") -> _T:
    """Record the inputs and outputs of each call of a Keras layer or torch module from now on, and return it.

    They are named ``<name> input[0]`` and ``<name> output``, and their gradients are recorded too. The default name is
    the name of the Keras layer, or the class of the torch module and a number.
    """
    probes = _sys.modules.get("_detaudit.recorder.probes")
    return layer if probes is None else probes.monitor_layer(layer, name)
