"""Find what layers, models and modules hold: their trainable weights, and as buffers those that are not."""

from __future__ import annotations

import importlib

from ...training.models import Held, ModelStates

TYPE_CHECKING = False
if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from ...training.reader import FrameworkReader
    from ...training.steps import Training

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

    def held(self, part: Any) -> Iterator[Held]:
        """Yield the weights of a layer that were built."""
        if _is_metric(part):
            return
        for attribute, buffer in _WEIGHTS if hasattr(part, _WEIGHTS[0][0]) else _WEIGHTS_BEFORE:
            for variable in getattr(part, attribute, ()):
                if hasattr(variable, "assign") and getattr(variable, "shape", None) is not None:
                    yield Held(variable.name.rpartition("/")[2].partition(":")[0], buffer, variable)


class ModuleStates(ModelStates):
    """The variables of all instances of ``tf.Module`` that are alive at the end, but for layers of Keras."""

    def __init__(self, tf: Any, reader: FrameworkReader, write: Callable[[Sequence[Any]], None]) -> None:
        super().__init__(tf.Module, reader, write)
        self._tf = tf

    def parts(self, model: Any) -> Iterable[tuple[str, Any]]:
        """Return a module and its submodules, by name."""
        inner = model._flatten(predicate=lambda leaf: isinstance(leaf, self._tf.Module), with_path=True)
        return [("", model), *[(".".join(map(str, path)), module) for path, module in inner]]

    def held(self, part: Any) -> Iterator[Held]:
        """Yield the variables of a module that are not in its submodules."""
        if hasattr(part, "_flatten_layers") or not self._tf.compat.v1.executing_eagerly_outside_functions():
            return  # a layer of Keras has an entry of its own, and variables of a session cannot be read
        leaves = part._flatten(False, predicate=lambda leaf: isinstance(leaf, self._tf.Variable), with_path=True)
        for path, variable in leaves:
            yield Held("/".join(map(str, path)), not variable.trainable, variable)


def _is_metric(layer: Any) -> bool:
    return hasattr(layer, "update_state") and hasattr(layer, "result")
