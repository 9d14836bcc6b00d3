"""Find the inputs of a Keras model or a tf.function, and the loss before an optimizer scales it."""

from __future__ import annotations

import functools
import importlib
import weakref

from ...process import imports
from ...training.nested import leaves

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from typing import Any

    from ...process.sink import Sink
    from .calls import CallOutputs

LAYERS = ("keras.src.layers.layer", "tf_keras.src.engine.base_layer", "keras.src.engine.base_layer")
"""The modules in which Keras 3, tf_keras and the Keras of older TensorFlows define Layer."""

SCALERS = {
    "keras.src.optimizers.base_optimizer": ("BaseOptimizer", "scale_loss"),
    "keras.src.optimizers.loss_scale_optimizer": ("LossScaleOptimizer", "scale_loss"),
    "tf_keras.src.mixed_precision.loss_scale_optimizer": ("LossScaleOptimizerV3", "get_scaled_loss"),
}
"""Module, class and method that scale a loss before its gradient is computed."""


class InputData:
    """Finds the data among the arguments of a call."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        self._np: Any = importlib.import_module("numpy")
        self._composite: Any = importlib.import_module("tensorflow.python.framework.composite_tensor").CompositeTensor
        self._tensor: Any = importlib.import_module("tensorflow.python.framework.ops").EagerTensor
        self._record: Any = importlib.import_module("tensorflow.python.eager.record")

    def of(self, arguments: Any) -> list[Any]:
        """Return the arrays and tensors among the arguments, except variables and tensors that a tape follows.

        The latter are outputs of another model, not data.
        """
        tf, found = self._tf, []
        for leaf in leaves(arguments):
            if type(leaf) is self._tensor:  # what follows asks abstract classes, which takes long
                if self._is_data(leaf):
                    found.append(leaf)
                continue
            parts = tf.nest.flatten(leaf, expand_composites=True) if isinstance(leaf, self._composite) else [leaf]
            for part in parts:
                if isinstance(part, self._np.ndarray) or (tf.is_tensor(part) and self._is_data(part)):
                    found.append(part)
        return found

    def _is_data(self, tensor: Any) -> bool:
        usual = type(tensor) is self._tensor or isinstance(tensor, self._tf.Tensor)
        if not usual or tensor.dtype in (self._tf.resource, self._tf.variant):
            return False  # a variable, an iterator
        return not self._record.should_record_backprop([tensor])

    def under_tape(self) -> bool:
        """Return whether a tape records the present computation."""
        return bool(self._record.could_possibly_record())


def watch_layers(
    sink: Sink,
    inside: threading.local,
    observe: Callable[[Any, Any], None],
    outputs: CallOutputs,
    imported: Callable[[type[Any]], None],
) -> None:
    """Call ``observe(layer, (args, kwargs))``, which must not raise, at each outermost call of a Keras layer or model.

    Record its ``outputs``. ``imported(Layer)`` is called for each class of layers, of which there is one for each
    version of Keras.
    """

    def watch(module: Any) -> None:
        imported(module.Layer)
        call = module.Layer.__call__

        @functools.wraps(call)
        def __call__(layer: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(inside, "layer", False):
                return call(layer, *args, **kwargs)
            inside.layer = True
            try:
                observe(layer, (args, kwargs))
                return outputs.of(layer, call, args, kwargs)
            finally:
                inside.layer = False

        module.Layer.__call__ = __call__

    for name in LAYERS:
        imports.when_imported(name, sink, watch)


class ScaledLosses:
    """Finds the loss that the script computed, if an optimizer scaled it before its gradient is computed."""

    def __init__(self, sink: Sink, inside: threading.local) -> None:
        self._sink, self._inside = sink, inside

    def watch(self) -> None:
        """Install the hooks as soon as the optimizers are imported."""
        for module, (name, method) in SCALERS.items():
            imports.when_imported(module, self._sink, functools.partial(self._watch, name, method))

    def _watch(self, name: str, method: str, module: Any) -> None:
        owner = getattr(module, name)
        scale = getattr(owner, method)

        @functools.wraps(scale)
        def scaled(optimizer: Any, loss: Any, *args: Any, **kwargs: Any) -> Any:
            result = scale(optimizer, loss, *args, **kwargs)
            if result is not loss:
                self._sink.guarded("scale", lambda: self._keep(result, loss))
            return result

        setattr(owner, method, scaled)

    def _keep(self, result: Any, loss: Any) -> None:
        if hasattr(loss, "dtype"):
            self._inside.scaled = (weakref.ref(result), loss)

    def unscaled(self, target: Any) -> Any:
        """Return the loss that was scaled to ``target``, or ``target`` if there is none."""
        result, loss = getattr(self._inside, "scaled", None) or (lambda: None, None)
        return loss if result() is target else target
