"""Variations of what a process is told by its system: the order of listings, and the clock."""

from __future__ import annotations

import os
import sys
import time

from ..process.replace import replace, replace_in_os, set_in_c
from ..randomness import seeds
from ..training import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_NS = 10**9


def _ordered(entries: Any, name: Callable[[Any], Any], number: int) -> list[Any]:
    """Return entries sorted by name for 0, backwards for 1, else in an order that the number and the names decide."""

    def place(entry: Any) -> Any:
        raw = os.fsencode(name(entry))
        return (digest.small(b"%d " % number + raw), raw) if number > 1 else raw

    return sorted(entries, key=place, reverse=number == 1)


class _Scan:
    """What os.scandir returns, with all entries read already."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> _Scan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._entries = iter(())


def order_listings(number: int) -> None:
    """List files in the order with this number, whatever order the file system has."""

    def listdir(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: _ordered(function(*args, **kwargs), lambda name: name, number)

    def scandir(function: Callable[..., Any]) -> Callable[..., Any]:
        def scan(*args: Any, **kwargs: Any) -> _Scan:
            with function(*args, **kwargs) as entries:
                return _Scan(_ordered(entries, lambda entry: entry.name, number))

        return scan

    replace_in_os("listdir", listdir)
    replace_in_os("scandir", scandir)


def move_clock(seconds: int) -> None:
    """Move the time of day. Monotonic clocks stay: timeouts and measured times are as long as they were."""
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
    # Without an argument, and with None, these ask the clock by themselves.
    return lambda *seconds: function(*seconds) if seconds and seconds[0] is not None else function(time.time())


def _of_clock(read: Callable[..., Any], move: int) -> Callable[..., Any]:
    of_the_day = [getattr(time, name, None) for name in ("CLOCK_REALTIME", "CLOCK_TAI")]
    return lambda clock: read(clock) + (move if clock in of_the_day else 0)


def move_datetime(_: int) -> None:
    """Have datetime ask ``time.time``, as date and datetime.today() do by themselves.

    The class is changed in place: one of another name could not be pickled, nor would what C makes be one of its
    instances.
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
