"""What layers and modules hold, and what their calls return."""

from __future__ import annotations

import functools
import importlib

from ...process import imports
from ...training.models import ModelStates, OwnTensor
from ...training.outputs import values_in

# Record what models return: calls of Keras layers and models, their predict and evaluate, and calls of functions.


TYPE_CHECKING = False
if TYPE_CHECKING:
    import contextlib
    import threading
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from ...process.log import Sink
    from ...training.digest import FrameworkReader
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


# Find what layers, models and modules hold: their trainable weights, and as buffers those that are not.


_WEIGHTS = (("_trainable_variables", False), ("_non_trainable_variables", True))
"""Where a layer of Keras 3 keeps its own weights. Random states are kept elsewhere."""

_WEIGHTS_BEFORE = (("_trainable_weights", False), ("_non_trainable_weights", True))
"""The same in tf_keras and older versions."""


def watch_state(
    layer: type[Any],
    training: Training,
    reader: FrameworkReader,
    outside_of_graphs: Callable[[], contextlib.AbstractContextManager[Any]],
) -> list[LayerStates]:
    """Record the state of all instances of this class of layers from now on; return nothing if that is not wanted."""

    def guard(observe: Callable[[Any], None]) -> Callable[[Any], None]:
        def run(model: Any) -> None:
            with training.lock, outside_of_graphs():
                observe(model)

        return lambda model: training.guarded("state", lambda: run(model))

    # With another backend of Keras, layers are modules or objects of that framework.
    tracked: type[Any] = importlib.import_module("tensorflow.python.trackable.base").Trackable
    if not training.wants("state") or not issubclass(layer, tracked):
        return []
    states = LayerStates(layer, reader, training.freed)
    states.install(guard)
    training.states.append(states)
    return [states]


class LayerStates(ModelStates):
    """The state of all layers of one version of Keras in this process."""

    CALLED_AT_EACH_STEP = False

    def parts(self, model: Any) -> Iterable[tuple[str, Any]]:
        """Return a layer and the layers in it, by name; metrics, which tf_keras takes for layers, are left out."""
        layers = [layer for layer in model._flatten_layers() if not _is_metric(layer)]
        return [("" if layer is model else layer.name, layer) for layer in layers]

    def own_tensors(self, part: Any) -> Iterator[OwnTensor]:
        """Yield the weights of a layer that were built."""
        for attribute, buffer in _WEIGHTS if hasattr(part, _WEIGHTS[0][0]) else _WEIGHTS_BEFORE:
            for variable in self._built(part, attribute):
                yield OwnTensor(variable.name.rpartition("/")[2].partition(":")[0], buffer, variable)

    def buffers(self, part: Any) -> list[Any]:
        """Return the weights of a layer that were built and are not trained."""
        names = [weights[1][0] for weights in (_WEIGHTS, _WEIGHTS_BEFORE)]
        return self._built(part, names[0] if hasattr(part, names[0]) else names[1])

    def _built(self, part: Any, attribute: str) -> list[Any]:
        variables = () if _is_metric(part) else getattr(part, attribute, ())
        return [one for one in variables if hasattr(one, "assign") and getattr(one, "shape", None) is not None]


class ModuleStates(ModelStates):
    """The variables of all instances of ``tf.Module`` that are alive at the end, but for layers of Keras."""

    def __init__(self, tf: Any, reader: FrameworkReader, write: Callable[[Sequence[Any], bool], None]) -> None:
        super().__init__(tf.Module, reader, write)
        self._tf = tf

    def parts(self, model: Any) -> Iterable[tuple[str, Any]]:
        """Return a module and its submodules, by name."""
        inner = model._flatten(predicate=lambda leaf: isinstance(leaf, self._tf.Module), with_path=True)
        return [("", model), *[(".".join(map(str, path)), module) for path, module in inner]]

    def own_tensors(self, part: Any) -> Iterator[OwnTensor]:
        """Yield the variables of a module that are not in its submodules."""
        if hasattr(part, "_flatten_layers") or not self._tf.compat.v1.executing_eagerly_outside_functions():
            return  # a layer of Keras has an entry of its own, and variables of a session cannot be read
        leaves = part._flatten(False, predicate=lambda leaf: isinstance(leaf, self._tf.Variable), with_path=True)
        for path, variable in leaves:
            yield OwnTensor("/".join(map(str, path)), not variable.trainable, variable)


def _is_metric(layer: Any) -> bool:
    return hasattr(layer, "update_state") and hasattr(layer, "result")
