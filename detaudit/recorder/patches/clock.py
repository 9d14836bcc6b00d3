"""The clock of Python: a variation moves it, and a patch lets it count its calls."""

from __future__ import annotations

import os
import sys
import time

from ... import wire
from ..process import frames
from ..process.replace import replace, set_in_c
from ..randomness import seeds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

    from . import Changes, PatchOptions

_NS = 10**9
_DATED = [getattr(time, name) for name in ("CLOCK_REALTIME", "CLOCK_TAI") if hasattr(time, name)]
"""Clocks of ``time.clock_gettime`` that tell the date."""


def move(seconds: int) -> None:
    """Move the time of day. Monotonic clocks are not affected, so timeouts and measured times keep their lengths."""
    seeds.clock_moved(seconds * _NS)
    replace(time, "time", lambda now: lambda: now() + seconds)
    replace(time, "time_ns", lambda now: lambda: now() + seconds * _NS)
    for name in ("gmtime", "localtime", "ctime"):
        replace(time, name, _of_seconds)
    replace(time, "asctime", lambda text: _of_tuple(text, 0))
    replace(time, "strftime", lambda text: _of_tuple(text, 1))
    for name, unit in (("clock_gettime", 1), ("clock_gettime_ns", _NS)):
        if hasattr(time, name):
            replace(time, name, lambda read, move=seconds * unit: _of_clock(read, move))  # type: ignore[misc]


def _of_seconds(function: Callable[..., Any]) -> Callable[..., Any]:
    # Without an argument or with None, these functions read the clock themselves.
    return lambda *seconds: function(*seconds) if seconds and seconds[0] is not None else function(time.time())


def _of_tuple(function: Callable[..., Any], before: int) -> Callable[..., Any]:
    # Without a tuple behind so many other arguments, these functions read the clock themselves.
    return lambda *args: function(*args) if len(args) > before else function(*args, time.localtime())


def _of_clock(read: Callable[..., Any], move: int) -> Callable[..., Any]:
    return lambda clock: read(clock) + (move if clock in _DATED else 0)


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


# A clock that counts.

_TICK_NS = _NS // 128
"""A binary fraction: no difference of two times is rounded, wherever the clock of a thread is."""

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_MEASURE = ("logging", "timeit")
"""Modules of the standard library that read the clock to measure or to date: all others wait for something real."""

_WAIT = (
    *("torch.distributed", "torch.multiprocessing", "torch.utils.data", "joblib", "ray", "distributed", "zmq"),
    *("tornado", "urllib3", "requests", "botocore", "google", "grpc", "aiohttp", "httpx", "fsspec", "filelock"),
)
"""Packages that read the clock to wait for other processes, or to tell a server the time."""

_counting: dict[CodeType, bool] = {}


def _counts(frame: FrameType | None) -> bool:
    """Return whether code that reads the clock in this frame gets the count."""
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    if frame is None or frames.is_ours(frame):
        return False
    if frame.f_code not in _counting:
        module = str(frame.f_globals.get("__name__"))
        if frames.is_standard_library(frame.f_code.co_filename):
            counting = module.partition(".")[0] in _MEASURE
        else:
            counting = not (module + ".").startswith(tuple([name + "." for name in _WAIT]))
        _counting[frame.f_code] = counting
    return _counting[frame.f_code]


def _asking(frame: FrameType | None) -> FrameType | None:
    """Return the frame for which the standard library waits in this one."""
    while frame is not None and (frames.is_ours(frame) or frames.is_standard_library(frame.f_code.co_filename)):
        frame = frame.f_back
    return frame


class _Count:
    """How far the clock of each thread is: a tick for each time that it was read, and ticks for what the thread slept.

    A thread starts with the time of the one that started it. A clock that all threads read together would depend on
    which of them is faster.
    """

    def __init__(self, changes: Changes) -> None:
        import threading

        self._own = threading.local()
        self._active: dict[int, Any] = threading._active  # type: ignore[attr-defined]
        self._ident = threading.get_ident
        changes.replace(threading.Thread, "start", self._starting)

    def _starting(self, start: Callable[..., Any]) -> Callable[..., Any]:
        def started(thread: Any, *args: Any, **kwargs: Any) -> Any:
            thread._detaudit_clock = self.ns
            return start(thread, *args, **kwargs)

        return started

    @property
    def ns(self) -> int:
        ns: int | None = getattr(self._own, "ns", None)
        return getattr(self._active.get(self._ident()), "_detaudit_clock", 0) if ns is None else ns

    def add(self, ns: int = _TICK_NS) -> int:
        """Let so much time pass in this thread, and return what has passed."""
        self._own.ns = ns = self.ns + ns
        return ns


def count(_: PatchOptions, changes: Changes) -> None:
    """Let 1/128 of a second pass each time that a thread reads a clock, and what it sleeps or waits in vain.

    Code that ``_counts`` leaves out gets the real time.
    """
    passed = _Count(changes).add
    date = os.environ.get("SOURCE_DATE_EPOCH", "")
    first = (int(date) if date.isdecimal() else wire.COUNTED_FROM_S) * _NS

    def reading(start: int, unit: int) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
        def make(read: Callable[[], Any]) -> Callable[[], Any]:
            return lambda: _in((start + passed()), unit) if _counts(sys._getframe()) else read()

        return make

    def of_clock(unit: int) -> Callable[[Callable[[int], Any]], Callable[[int], Any]]:
        def make(read: Callable[[int], Any]) -> Callable[[int], Any]:
            def clock_gettime(clock: int) -> Any:
                real = read(clock)
                start = first if clock in _DATED else 0
                return _in(start + passed(), unit) if _counts(sys._getframe()) else real

            return clock_gettime

        return make

    clocks = {"time": first, "monotonic": 0, "perf_counter": 0, "process_time": 0, "thread_time": 0}
    for name, start in clocks.items():
        if hasattr(time, name):
            changes.replace(time, name, reading(start, _NS))
            changes.replace(time, name + "_ns", reading(start, 1))
    if hasattr(time, "clock_gettime"):
        changes.replace(time, "clock_gettime", of_clock(_NS))
        changes.replace(time, "clock_gettime_ns", of_clock(1))
    for name in ("gmtime", "localtime", "ctime"):
        changes.replace(time, name, _of_seconds)
    changes.replace(time, "asctime", lambda text: _of_tuple(text, 0))
    changes.replace(time, "strftime", lambda text: _of_tuple(text, 1))
    _count_waits(passed, changes)
    _count_dates(lambda: (first + passed()) / _NS, changes)


def _in(ns: int, unit: int) -> float:
    """Return nanoseconds in this unit, as a whole number if that is a nanosecond."""
    return ns if unit == 1 else ns / unit


def _count_waits(passed: Callable[[int], int], changes: Changes) -> None:
    """Let what a thread sleeps pass in whole ticks, and what it waits for a condition that does not come.

    So a loop that waits until a deadline ends, though waiting itself has the real clock.
    """
    import threading

    def waited(seconds: Any) -> None:
        passed(-(-int(seconds * _NS) // _TICK_NS) * _TICK_NS)

    def sleeping(sleep: Callable[..., None]) -> Callable[..., None]:
        def slept(*args: Any) -> None:
            sleep(*args)
            if _counts(sys._getframe()):
                waited(args[0])

        return slept

    def waiting(wait: Callable[..., bool]) -> Callable[..., bool]:
        def waited_for(condition: Any, timeout: Any = None) -> bool:
            came = wait(condition, timeout)
            if not came and timeout is not None and timeout > 0 and _counts(_asking(sys._getframe())):
                waited(timeout)
            return came

        return waited_for

    changes.replace(time, "sleep", sleeping)
    changes.replace(threading.Condition, "wait", waiting)


def _count_dates(now_s: Callable[[], float], changes: Changes) -> None:
    """Let ``datetime.now`` and ``utcnow`` read the count. ``date.today`` and ``datetime.today`` call ``time.time``."""
    import datetime

    kind: Any = datetime.datetime
    originals = {name: vars(kind)[name] for name in ("now", "utcnow")}

    def now(cls: Any, tz: Any = None) -> Any:
        return cls.fromtimestamp(now_s(), tz) if _counts(sys._getframe()) else originals["now"].__get__(None, cls)(tz)

    def utcnow(cls: Any) -> Any:
        if not _counts(sys._getframe()):
            return originals["utcnow"].__get__(None, cls)()
        return cls.fromtimestamp(now_s(), datetime.timezone.utc).replace(tzinfo=None)

    set_in_c(kind, now=classmethod(now), utcnow=classmethod(utcnow))
    changes.on_undo(lambda: set_in_c(kind, **originals))
