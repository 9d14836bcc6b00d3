"""Directories are listed in the order of their names, whatever order the file system keeps them in."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from . import Changes, Order

_HOLDERS = (("pathlib", "_NormalAccessor"), ("glob", "_GlobberBase"), ("glob", "_StringGlobber"))
"""Classes that hold os.listdir or os.scandir as they stood at the import of the module, by version of Python."""


class _Sorted:
    """Stands for what os.scandir returns: reads all entries when the first is asked for."""

    def __init__(self, entries: Any) -> None:
        self._entries = entries
        self._sorted: Iterator[Any] | None = None

    def __iter__(self) -> _Sorted:
        return self

    def __next__(self) -> Any:
        if self._sorted is None:
            self._sorted = iter(sorted(self._entries, key=_name))
        return next(self._sorted)

    def __enter__(self) -> _Sorted:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._sorted = iter(())
        self._entries.close()


def _name(entry: Any) -> Any:
    return entry.name


def _listdir(function: Callable[..., Any]) -> Callable[..., Any]:
    def listdir(*args: Any, **kwargs: Any) -> Any:
        return sorted(function(*args, **kwargs))

    return listdir


def _scandir(function: Callable[..., Any]) -> Callable[..., Any]:
    def scandir(*args: Any, **kwargs: Any) -> Any:
        return _Sorted(function(*args, **kwargs))

    return scandir


def sort(order: Order, changes: Changes) -> None:
    """Sort what os.listdir and os.scandir return; glob, pathlib, os.walk and shutil stand on them."""
    for name, make in (("listdir", _listdir), ("scandir", _scandir)):
        function = getattr(os, name)
        wrapper = changes.replace(os, name, make)
        for members in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
            if function in members:  # scripts, and shutil, ask whether the function is in here
                members.add(wrapper)
                changes.on_undo(lambda members=members, wrapper=wrapper: members.discard(wrapper))  # type: ignore[misc]
        for module, kind in _HOLDERS:
            holder = getattr(sys.modules.get(module), kind, None)
            if getattr(holder, name, None) is function:
                changes.set(holder, name, staticmethod(wrapper))
