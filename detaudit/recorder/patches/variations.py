"""Variations inside a process: the order of directory listings, and the clock."""

from __future__ import annotations

import os
import sys
import time

from ..process.os_functions import replace_in_os
from ..process.replace import replace, set_in_c
from ..randomness import seeds
from ..training import digest
from .listings import ordered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_NS = 10**9


def order_listings(number: int) -> None:
    """List directories in alphabetical order for 0, backward for 1, else in an order derived from number and names."""

    def arrange(entries: Iterable[Any], name_of: Callable[[Any], Any]) -> list[Any]:
        def place(entry: Any) -> Any:
            raw = os.fsencode(name_of(entry))
            return (digest.small(b"%d " % number + raw), raw) if number > 1 else raw

        return sorted(entries, key=place, reverse=number == 1)

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
