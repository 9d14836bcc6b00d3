"""Post-import hooks: call a function right after a module was imported, no matter who imports it."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    from .log import Sink

_machinery: Any = importlib._bootstrap
_waiting: dict[str, list[Callable[[ModuleType], None]]] = {}


def _watch_imports() -> None:
    # Every import calls this function. A finder in sys.meta_path would come too late: pytest puts its own before it.
    find = _machinery._find_spec
    if getattr(find, "__module__", "") == __name__:
        return

    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec: ModuleSpec | None = find(name, path, target)
        if spec is not None and name in _waiting:
            _wrap(name, spec)
        return spec

    _machinery._find_spec = find_spec


def _wrap(name: str, spec: ModuleSpec) -> None:
    """Wrap ``exec_module`` of the loader instance. It keeps its type, for inspect, importlib.resources and pkgutil."""
    loader = spec.loader
    execute = getattr(loader, "exec_module", None)
    if execute is None:
        return

    def exec_module(module: ModuleType) -> None:
        execute(module)
        if module.__name__ != name:  # one loader may serve many modules: that of pytest does
            return
        try:
            del loader.exec_module  # type: ignore[union-attr]
        except AttributeError:
            pass
        _run(name, sys.modules.get(name, module))

    try:
        loader.exec_module = exec_module  # type: ignore[union-attr,method-assign]
    except AttributeError:
        pass


def _run(name: str, module: ModuleType) -> None:
    for callback in _waiting.pop(name, ()):
        callback(module)


def when_imported(name: str, sink: Sink, callback: Callable[[ModuleType], None]) -> None:
    """Call ``callback(module)`` once ``name`` is imported, or now if it already is. Record a failure as trouble."""

    def guarded(module: ModuleType) -> None:
        sink.guarded("import of " + name, lambda: callback(module))

    if name in sys.modules:
        guarded(sys.modules[name])
        return
    _waiting.setdefault(name, []).append(guarded)
    _watch_imports()
