"""The inner half of detaudit.monitor and its kin: records what a script asked to have watched, and gives it back."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ..training import record
from . import layers
from .compilers import as_it_is, graph_may_not_break, known_when_traced, outside_of_graphs
from .structure import walk
from .watcher import Watcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..process.recorder import Recorder

_watcher: Watcher | None = None


def prepare(recorder: Recorder) -> None:
    """Have the probes write into this recorder's trace."""
    global _watcher
    _watcher = Watcher(recorder)


@known_when_traced
def _watching() -> bool:
    if _watcher is None or _watcher.notebook.full:
        return False
    if graph_may_not_break():
        error = RuntimeError("nothing is recorded inside torch.compile(fullgraph=True): its graph may not be broken")
        _watcher.notebook.complain("a probe", error)
        return False
    return True


@as_it_is
def monitor(value: Any, name: str) -> Any:
    """Record ``value`` and return it; see detaudit.monitor."""
    return _monitor(value, name) if _watching() else value


@outside_of_graphs
def _monitor(value: Any, name: str) -> Any:
    if _watcher is None or _keras_only_asks_for_shapes():
        return value
    try:
        return walk(value, str(name), _watcher.visit)
    except Exception as error:
        _watcher.notebook.complain(f"detaudit.monitor of {name!r}", error)
        return value


def _keras_only_asks_for_shapes() -> bool:
    scopes = sys.modules.get("keras.src.backend.common.symbolic_scope")
    return hasattr(scopes, "in_symbolic_scope") and bool(scopes.in_symbolic_scope())  # type: ignore[union-attr]


@as_it_is
def monitor_gradients(pairs: Any) -> Any:
    """Record each gradient and return the pairs; see detaudit.monitor_gradients."""
    return _monitor_gradients(pairs) if _watching() else pairs


@outside_of_graphs
def _monitor_gradients(pairs: Any) -> Any:
    once = isinstance(pairs, Iterator)
    kept = list(pairs) if once else pairs
    if _watcher is not None:
        watcher = _watcher
        watcher.guarded("detaudit.monitor_gradients", lambda: _gradients(watcher, kept))
    return iter(kept) if once else pairs


def _gradients(watcher: Watcher, pairs: Any) -> None:
    names: dict[str, int] = {}
    for first, second in pairs:
        name, gradient = (first, second.grad) if isinstance(first, str) else (_name_of(second), first)
        names[name] = names.get(name, 0) + 1  # names of TensorFlow's variables need not be unique
        watcher.gradient(gradient, name if names[name] == 1 else f"{name} ({names[name]})")


def _name_of(variable: Any) -> str:
    # Keras 3 gives a path, which is unique; TensorFlow and Keras 2 a name.
    return str(getattr(variable, "path", None) or getattr(variable, "name", None) or type(variable).__name__)


def monitor_layer(layer: Any, name: str) -> Any:
    """Have the calls of a layer recorded and return it; see detaudit.monitor_layer."""
    if _watcher is not None:
        _watcher.guarded("detaudit.monitor_layer", lambda: layers.watch(layer, name, monitor))
    return layer


@as_it_is
def record_weights(model: Any) -> None:
    """Record the weights of a model as those of a step; see detaudit.record_weights."""
    if _watching():
        _record_weights(model)


@outside_of_graphs
def _record_weights(model: Any) -> None:
    if _watcher is not None:
        watcher = _watcher
        watcher.guarded(
            "detaudit.record_weights", lambda: _weights(watcher, list(record.leaves(layers.weights_of(model))))
        )


def _weights(watcher: Watcher, weights: list[Any]) -> None:
    graph = watcher.graph_of(weights)
    if graph is None:
        record.record(None, None, weights)
    else:
        graph.on_host(lambda *arrays: record.record(None, None, list(arrays)), weights)
