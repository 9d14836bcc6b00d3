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

_SECOND = 2**20
_TICK = _SECOND // 128
"""What passes at each reading. Times are binary fractions of a second, so that no difference of two is rounded."""

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_REAL = (
    *("torch.distributed", "torch.multiprocessing", "torch.utils.data", "ray", "distributed", "zmq", "tornado"),
    *("joblib.parallel", "joblib._parallel_backends", "joblib.externals", "filelock", "fsspec", "urllib3", "requests"),
    *("botocore", "google", "grpc", "aiohttp", "httpx", "torch.utils.benchmark", "pytest_benchmark"),
)
"""Packages that wait for other processes, tell a server the time, or repeat something until it took long enough.

So does Python's own library, but for logging, which only tells the time.
"""

_counting: dict[CodeType, bool] = {}


def _counts(frame: FrameType | None) -> bool:
    """Return whether code that reads the clock in this frame gets the count."""
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    if frame is None or frames.is_ours(frame):
        return False
    if frame.f_code not in _counting:
        module = str(frame.f_globals.get("__name__"))
        file = frame.f_code.co_filename
        if frames.is_standard_library(file) or file == "<timeit-src>":
            counting = module.partition(".")[0] == "logging"
        else:
            counting = not (module + ".").startswith(tuple([name + "." for name in _REAL]))
        _counting[frame.f_code] = counting
    return _counting[frame.f_code]


def _asking(frame: FrameType | None) -> FrameType | None:
    """Return the frame for which the standard library waits in this one."""
    while frame is not None and (frames.is_ours(frame) or frames.is_standard_library(frame.f_code.co_filename)):
        frame = frame.f_back
    return frame


class _Count:
    """How far the clock of each thread is: a tick for each time that the thread read it, and what the thread waited.

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
            thread._detaudit_clock = self.time
            return start(thread, *args, **kwargs)

        return started

    @property
    def time(self) -> int:
        """What has passed in this thread, in 2**20ths of a second."""
        time: int | None = getattr(self._own, "time", None)
        return getattr(self._active.get(self._ident()), "_detaudit_clock", 0) if time is None else time

    def read(self) -> int:
        """Let a tick pass, and return what has passed."""
        self._own.time = time = self.time + _TICK
        return time

    def wait(self, seconds: Any) -> None:
        """Let so many seconds pass."""
        self._own.time = self.time + int(seconds * _SECOND)


def count(_: PatchOptions, changes: Changes) -> None:
    """Let 1/128 of a second pass each time that a thread reads a clock, and what it sleeps or waits in vain.

    Code that ``_counts`` leaves out gets the real time.
    """
    clock = _Count(changes)
    first_s = wire.counted_from_s(os.environ)

    def seconds(start: int) -> float:
        return start + clock.read() / _SECOND

    def nanoseconds(start: int) -> int:
        return start * _NS + clock.read() * _NS // _SECOND

    def reading(told: Callable[[int], Any], start: int) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
        return lambda read: lambda: told(start) if _counts(sys._getframe()) else read()

    def of_clock(told: Callable[[int], Any]) -> Callable[[Callable[[int], Any]], Callable[[int], Any]]:
        def make(read: Callable[[int], Any]) -> Callable[[int], Any]:
            def clock_gettime(number: int) -> Any:
                real = read(number)
                return told(first_s if number in _DATED else 0) if _counts(sys._getframe()) else real

            return clock_gettime

        return make

    starts = {"time": first_s, "monotonic": 0, "perf_counter": 0, "process_time": 0, "thread_time": 0}
    for name, start in starts.items():
        if hasattr(time, name):
            changes.replace(time, name, reading(seconds, start))
            changes.replace(time, name + "_ns", reading(nanoseconds, start))
    if hasattr(time, "clock_gettime"):
        changes.replace(time, "clock_gettime", of_clock(seconds))
        changes.replace(time, "clock_gettime_ns", of_clock(nanoseconds))
    for name in ("gmtime", "localtime", "ctime"):
        changes.replace(time, name, _of_seconds)
    changes.replace(time, "asctime", lambda text: _of_tuple(text, 0))
    changes.replace(time, "strftime", lambda text: _of_tuple(text, 1))
    changes.on_undo(seeds.clock_counts(lambda: first_s * _NS + clock.time * _NS // _SECOND))
    _count_waits(clock.wait, changes)
    _count_dates(lambda: seconds(first_s), changes)


def _count_waits(waited: Callable[[Any], None], changes: Changes) -> None:
    """Let what a thread sleeps pass, and what it waits in vain for a condition or the end of another thread.

    So a loop that waits until a deadline ends, though waiting itself has the real clock.
    """
    import threading

    def sleeping(sleep: Callable[..., None]) -> Callable[..., None]:
        def slept(*args: Any) -> None:
            sleep(*args)
            if _counts(sys._getframe()):
                waited(args[0])

        return slept

    def in_vain(timeout: Any) -> None:
        if timeout is not None and timeout > 0 and _counts(_asking(sys._getframe())):
            waited(timeout)

    def waiting(wait: Callable[..., bool]) -> Callable[..., bool]:
        def waited_for(condition: Any, timeout: Any = None) -> bool:
            came = wait(condition, timeout)
            if not came:
                in_vain(timeout)
            return came

        return waited_for

    def joining(join: Callable[..., None]) -> Callable[..., None]:
        def joined(thread: Any, timeout: Any = None) -> None:
            join(thread, timeout)
            if thread.is_alive():
                in_vain(timeout)

        return joined

    changes.replace(time, "sleep", sleeping)
    changes.replace(threading.Thread, "join", joining)
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
