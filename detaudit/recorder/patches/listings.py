"""The patch that sorts directory listings, and the variation of their order."""

from __future__ import annotations

import os
import sys

from ..process.replace import DirectoryScan, replace_in_os
from ..training import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from . import Changes, PatchOptions

    Arrange = Callable[[Iterable[Any], Callable[[Any], Any]], list[Any]]
    """Takes the entries of a directory, and a function that returns the name of one. Returns the entries in order."""

_HOLDERS = (("pathlib", "_NormalAccessor"), ("glob", "_GlobberBase"), ("glob", "_StringGlobber"))
"""Classes that keep os.listdir or os.scandir from the import of their module on, in some versions of Python."""


class _Ordered(DirectoryScan):
    """Reads all entries when the first one is requested, and hands them out in order."""

    def __init__(self, entries: Any, arrange: Arrange) -> None:
        super().__init__(entries)
        self._arrange = arrange

    def _hand_out(self, entries: Any) -> Iterator[Any]:
        return iter(self._arrange(entries, lambda entry: entry.name))


def ordered(arrange: Arrange) -> Iterable[tuple[str, Callable[[Callable[..., Any]], Callable[..., Any]]]]:
    """Return the name of each function of os that lists a directory, with a wrapper that lists in this order."""

    def make_listdir(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: arrange(function(*args, **kwargs), lambda name: name)

    def make_scandir(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: _Ordered(function(*args, **kwargs), arrange)

    return ("listdir", make_listdir), ("scandir", make_scandir)


def sort(options: PatchOptions, changes: Changes) -> None:
    """Sort what os.listdir and os.scandir return, and so the results of glob, pathlib, os.walk and shutil."""
    for name, make in ordered(lambda entries, name_of: sorted(entries, key=name_of)):
        function = getattr(os, name)
        wrapper = changes.replace_in_os(name, make)
        for module, kind in _HOLDERS:
            holder = getattr(sys.modules.get(module), kind, None)
            if getattr(holder, name, None) is function:
                changes.set(holder, name, staticmethod(wrapper))


def order_listings(number: int) -> None:
    """List directories in alphabetical order for 0, backward for 1, else in an order derived from number and names."""

    def arrange(entries: Iterable[Any], name_of: Callable[[Any], Any]) -> list[Any]:
        def sort_key(entry: Any) -> Any:
            raw = os.fsencode(name_of(entry))
            return (digest.small(b"%d " % number + raw), raw) if number > 1 else raw

        return sorted(entries, key=sort_key, reverse=number == 1)

    for function, make in ordered(arrange):
        replace_in_os(function, make)
