"""Post-import hooks: call a function right after a module was imported, no matter who imports it."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from .sink import Sink

_waiting: dict[str, list[Callable[[ModuleType], None]]] = {}


class _Finder:
    """Asks the other finders, then wraps ``exec_module`` of the loader instance that will load the module.

    The loader keeps its type, so nothing changes for inspect, importlib.resources and pkgutil.
    """

    def __init__(self) -> None:
        self._asking: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _waiting or name in self._asking:
            return None
        self._asking.add(name)  # another finder may in turn ask sys.meta_path
        try:
            spec = self._ask_others(name, path, target)
        finally:
            self._asking.discard(name)
        if spec is not None:
            _wrap(name, spec)
        return spec

    def _ask_others(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        # importlib.util.find_spec would ask twice, and some finders answer only once.
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                return spec
        return None


_finder = _Finder()


def _wrap(name: str, spec: ModuleSpec) -> None:
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
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
