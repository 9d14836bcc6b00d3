"""Record what models return: calls of Keras layers and models, their predict and evaluate, and calls of functions."""

from __future__ import annotations

import functools
import importlib

from ...process import imports
from ...training.outputs import values_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from typing import Any

    from ...process.sink import Sink
    from ...training.steps import Training

TRAINERS = {
    "keras.src.backend.tensorflow.trainer": "TensorFlowTrainer",
    "tf_keras.src.engine.training": "Model",
    "keras.src.engine.training": "Model",
}
"""The modules in which Keras 3, tf_keras and the Keras of older TensorFlows define the class with METHODS."""

METHODS = ("predict", "evaluate", "predict_on_batch", "test_on_batch")


class CallOutputs:
    """Records the output of each outermost call in eager code; what is traced into a graph returns no values."""

    def __init__(self, tf: Any, sink: Sink, training: Callable[[], Training], inside: threading.local) -> None:
        self._tf, self._sink, self._training, self._inside = tf, sink, training, inside
        self._trackable: Any = importlib.import_module("tensorflow.python.trackable.base").Trackable
        self._tensor: Any = importlib.import_module("tensorflow.python.framework.ops").EagerTensor
        self._composite: Any = importlib.import_module("tensorflow.python.framework.composite_tensor").CompositeTensor

    def of(self, model: Any, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call ``call(model, *args, **kwargs)``, and record what it is called with and what it returns."""
        inside = self._inside
        # With another backend of Keras, a model returns arrays of that framework.
        ours = isinstance(model, self._trackable) and self._tf.executing_eagerly()
        if getattr(inside, "call", False) or not ours:
            return call(model, *args, **kwargs)
        inside.call = True
        steps = self._training().losses_seen
        try:
            self._sink.guarded("output", lambda: self._calling(model, (args, kwargs)))
            result = call(model, *args, **kwargs)
        finally:
            inside.call = False
        if self._training().losses_seen == steps:  # otherwise it trained, and this is its loss
            self._sink.guarded("output", lambda: self._returned(result))
        return result

    def watch_trainers(self) -> None:
        """Install hooks for METHODS as soon as Keras is imported."""
        for module, name in TRAINERS.items():
            imports.when_imported(module, self._sink, functools.partial(self._watch_trainer, name))

    def _watch_trainer(self, name: str, module: Any) -> None:
        owner = getattr(module, name)
        for method in METHODS:
            setattr(owner, method, self._recorded(getattr(owner, method)))

    def _recorded(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def recorded(model: Any, *args: Any, **kwargs: Any) -> Any:
            return self.of(model, method, args, kwargs)

        return recorded

    def _calling(self, model: Any, call: Any) -> None:
        training = self._training()
        with training.lock:
            training.outputs.entered()
            if training.outputs.each:
                weights = getattr(model, "weights", ())
                training.outputs.calling(model, lambda: list(weights), values_in(call, self._tensors))

    def _returned(self, result: Any) -> None:
        training = self._training()
        with training.lock:
            training.outputs.returned(values_in(result, self._tensors))

    def _tensors(self, value: Any) -> list[Any] | None:
        """Return the parts of a tensor that have values, None for what is not a tensor."""
        tf = self._tf
        if type(value) is self._tensor:  # what follows asks abstract classes, which takes long
            return [] if value.dtype in (tf.resource, tf.variant) else [value]
        if isinstance(value, self._composite):
            value = tf.nest.flatten(value, expand_composites=True)
        elif not tf.is_tensor(value):
            return None
        parts = value if isinstance(value, list) else [value]
        return [part for part in parts if hasattr(part, "numpy") and part.dtype not in (tf.resource, tf.variant)]
