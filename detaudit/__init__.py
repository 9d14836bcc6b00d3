"""detaudit: is a training script deterministic, and which settings make it so.

A script may call the functions below: ``record`` and ``record_weights`` where no hook can see its training, the
``monitor``s to find where runs part. Outside an audit each costs one look-up and gives its argument back. Inside one
nothing is raised, whatever goes wrong: the audit's report says it.
"""

import sys as _sys
from typing import TypeVar as _TypeVar

__version__ = "0.1.0"

_T = _TypeVar("_T")


def record(*, step: "int | None" = None, loss: object = None, weights: object = None) -> None:
    """Tell an audit that a training step ended.

    ``step`` is its number, from 1 and growing; without one, steps are counted. ``loss`` is a number or an array of one
    element; ``weights`` an array, a number, or a list, tuple or dict of them, nested as you like: NumPy, torch, JAX,
    or anything that NumPy can read. Without weights an audit can find that runs differ, but never that they are equal.
    """
    script = _sys.modules.get("_detaudit.recorder.training.record")
    if script is not None:
        script.record(step, loss, weights)


def record_weights(model: object) -> None:
    """Tell an audit that a training step ended, with the weights of ``model`` as they are now.

    ``model`` is a Keras model or layer, a torch module, or what ``record(weights=…)`` takes. It may be called inside a
    ``tf.function``, but not in one that XLA compiles.
    """
    probes = _sys.modules.get("_detaudit.recorder.probes")
    if probes is not None:
        probes.record_weights(model)


def monitor(x: _T, name: str) -> _T:
    """Return ``x``; an audit records its value, and the gradient that comes back through it.

    ``x`` is None, a bool, a number, a string, bytes, a tensor or an array (torch, TensorFlow, NumPy, what NumPy can
    read), or a list, tuple, named tuple or dict of them, whose parts are recorded as ``name[0]``, ``name.field``,
    ``name['key']``. It is ``x`` itself that is returned, except that a TensorFlow tensor through which a gradient may
    come back is returned as its identity, in a structure of the same types. Inside a ``tf.function`` tensors are
    recorded whenever it runs, and what is a constant there when it is traced; under XLA nothing is. ``torch.compile``
    breaks its graph here; with ``fullgraph=True``, where it may not, nothing is recorded.
    """
    probes = _sys.modules.get("_detaudit.recorder.probes")
    return x if probes is None else probes.monitor(x, name)


def monitor_gradients(grads_and_vars: _T) -> _T:
    """Return the pairs; an audit records each gradient under the name of its variable.

    The pairs are TensorFlow's ``(gradient, variable)``, or ``(name, parameter)`` as of torch's ``named_parameters()``,
    whose gradients are in ``parameter.grad``. An iterator is returned as another iterator over the same pairs.
    """
    probes = _sys.modules.get("_detaudit.recorder.probes")
    return grads_and_vars if probes is None else probes.monitor_gradients(grads_and_vars)


def monitor_layer(layer: _T, name: str = "") -> _T:
    """Return the Keras layer or torch module; from now on an audit records the inputs and outputs of each call.

    They are named ``<name> input[0]`` and ``<name> output``, with the gradients that come back. Without a name it is
    the Keras layer's, or the class of the torch module and a number.
    """
    probes = _sys.modules.get("_detaudit.recorder.probes")
    return layer if probes is None else probes.monitor_layer(layer, name)
