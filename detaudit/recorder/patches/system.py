"""Patches and variations of listings and clocks."""

from __future__ import annotations

import os
import sys
import time

from ..process.replace import DirectoryScan, replace, replace_in_os, set_in_c
from ..randomness import seeds
from ..training import digest

# Change the order in which directories are listed.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

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


# Variations inside a process: the order of directory listings, and the clock.


_NS = 10**9


def order_listings(number: int) -> None:
    """List directories in alphabetical order for 0, backward for 1, else in an order derived from number and names."""

    def arrange(entries: Iterable[Any], name_of: Callable[[Any], Any]) -> list[Any]:
        def sort_key(entry: Any) -> Any:
            raw = os.fsencode(name_of(entry))
            return (digest.small(b"%d " % number + raw), raw) if number > 1 else raw

        return sorted(entries, key=sort_key, reverse=number == 1)

    for function, make in ordered(arrange):
        replace_in_os(function, make)


def move_clock(seconds: int) -> None:
    """Move the time of day. Monotonic clocks are not affected, so timeouts and measured times keep their lengths."""
    seeds.clock_moved(seconds * _NS)
    replace(time, "time", lambda now: lambda: now() + seconds)
    replace(time, "time_ns", lambda now: lambda: now() + seconds * _NS)
    for name in ("gmtime", "localtime", "ctime"):
        replace(time, name, _of_seconds)
    replace(time, "asctime", lambda text: lambda *when: text(*(when or (time.localtime(),))))
    replace(time, "strftime", lambda text: lambda form, *when: text(form, *(when or (time.localtime(),))))
    for name, unit in (("clock_gettime", 1), ("clock_gettime_ns", _NS)):
        if hasattr(time, name):
            replace(time, name, lambda read, move=seconds * unit: _of_clock(read, move))  # type: ignore[misc]


def _of_seconds(function: Callable[..., Any]) -> Callable[..., Any]:
    # Without an argument or with None, these functions read the clock themselves.
    return lambda *seconds: function(*seconds) if seconds and seconds[0] is not None else function(time.time())


def _of_clock(read: Callable[..., Any], move: int) -> Callable[..., Any]:
    of_the_day = [getattr(time, name, None) for name in ("CLOCK_REALTIME", "CLOCK_TAI")]
    return lambda clock: read(clock) + (move if clock in of_the_day else 0)


def move_datetime(_: int) -> None:
    """Make ``datetime.now`` and ``utcnow`` call ``time.time``, as ``date.today`` and ``datetime.today`` do anyway.

    The class is changed in place. Objects that C code creates would not be instances of a subclass, and a class with
    a different name could not be pickled.
    """
    module = sys.modules["datetime"]
    kind, utc = module.datetime, module.timezone.utc

    def now(cls: Any, tz: Any = None) -> Any:
        return cls.fromtimestamp(time.time(), tz)

    def utcnow(cls: Any) -> Any:
        return cls.fromtimestamp(time.time(), utc).replace(tzinfo=None)

    set_in_c(kind, now=classmethod(now), utcnow=classmethod(utcnow))


VARIATIONS: dict[str, Callable[[int], None]] = {
    "order-listings": order_listings,
    "move-clock": move_clock,
    "move-datetime": move_datetime,
}
