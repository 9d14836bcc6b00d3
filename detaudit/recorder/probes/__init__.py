"""Implement detaudit.monitor, monitor_gradients, monitor_layer and record_weights inside an audit."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ..training import record
from ..training.compilers import constant_when_traced, needs_full_graph, never_convert, outside_graphs
from ..training.walk import walk
from . import layers
from .watcher import ProbeWatcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..process.recorder import Recorder

_watcher: ProbeWatcher | None = None


def prepare(recorder: Recorder) -> None:
    """Make the probes write to the event log of this recorder."""
    global _watcher
    _watcher = ProbeWatcher(recorder)


@constant_when_traced
def _is_recording() -> bool:
    if _watcher is None or _watcher.log.full:
        return False
    if needs_full_graph():
        error = RuntimeError("cannot record inside torch.compile(fullgraph=True), which allows no graph break")
        _watcher.log.trouble("a probe", error)
        return False
    return True


@never_convert
def monitor(value: Any, name: str) -> Any:
    """Record ``value`` and return it; see detaudit.monitor."""
    return _monitor(value, name) if _is_recording() else value


@outside_graphs
def _monitor(value: Any, name: str) -> Any:
    if _watcher is None or _keras_infers_shapes():
        return value
    try:
        return walk(value, str(name), _watcher.visit)
    except Exception as error:
        _watcher.log.trouble(f"detaudit.monitor of {name!r}", error)
        return value


def _keras_infers_shapes() -> bool:
    scopes = sys.modules.get("keras.src.backend.common.symbolic_scope")
    return hasattr(scopes, "in_symbolic_scope") and bool(scopes.in_symbolic_scope())  # type: ignore[union-attr]


@never_convert
def monitor_gradients(pairs: Any) -> Any:
    """Record each gradient and return the pairs; see detaudit.monitor_gradients."""
    return _monitor_gradients(pairs) if _is_recording() else pairs


@outside_graphs
def _monitor_gradients(pairs: Any) -> Any:
    once = isinstance(pairs, Iterator)
    kept = list(pairs) if once else pairs
    if _watcher is not None:
        watcher = _watcher
        watcher.guarded("detaudit.monitor_gradients", lambda: _gradients(watcher, kept))
    return iter(kept) if once else pairs


def _gradients(watcher: ProbeWatcher, pairs: Any) -> None:
    names: dict[str, int] = {}
    for first, second in pairs:
        name, gradient = (first, second.grad) if isinstance(first, str) else (_name_of(second), first)
        names[name] = names.get(name, 0) + 1  # variables of TensorFlow can share a name
        watcher.gradient(gradient, name if names[name] == 1 else f"{name} ({names[name]})")


def _name_of(variable: Any) -> str:
    # Keras 3 has a path, which is unique; TensorFlow and Keras 2 have a name.
    return str(getattr(variable, "path", None) or getattr(variable, "name", None) or type(variable).__name__)


def monitor_layer(layer: Any, name: str) -> Any:
    """Record the calls of a layer from now on and return it; see detaudit.monitor_layer."""
    if _watcher is not None:
        _watcher.guarded("detaudit.monitor_layer", lambda: layers.watch(layer, name, monitor))
    return layer


@never_convert
def record_weights(model: Any) -> None:
    """Record the weights of a model at the end of a step; see detaudit.record_weights."""
    if _is_recording():
        _record_weights(model)


@outside_graphs
def _record_weights(model: Any) -> None:
    if _watcher is not None:
        watcher = _watcher
        watcher.guarded(
            "detaudit.record_weights", lambda: _weights(watcher, list(record.leaves(layers.weights_of(model))))
        )


def _weights(watcher: ProbeWatcher, weights: list[Any]) -> None:
    graph = watcher.graph_of(weights)
    if graph is None:
        record.record(None, None, weights)
    else:
        graph.on_host(lambda *arrays: record.record(None, None, list(arrays)), weights)
