"""Recognize the times that a fit measured, by their name and by their value together."""

from __future__ import annotations

import math
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ALONE = frozenset(("elapsed", "timestamp", "runtime", "walltime", "finished", "started", "duration", "durations"))
_UNITS = frozenset(("time", "times", "seconds", "secs", "sec", "ms", "elapsed", "duration", "timestamp", "at"))
_OF_A_FIT = frozenset(
    (
        *("fit", "fitting", "refit", "score", "scoring", "train", "training", "predict", "prediction", "inference"),
        *("run", "running", "wall", "clock", "cpu", "gpu", "exec", "execution", "compute", "computation", "build"),
        *("eval", "evaluation", "iter", "iteration", "epoch", "step", "search", "process", "processing", "elapsed"),
        *("start", "started", "end", "ended", "stop", "finish", "finished", "begin", "init", "created", "updated"),
        *("optimization", "preprocessing", "tuning", "generation", "trial", "round"),
    )
)
_MOMENTS = frozenset(
    (
        *("start", "started", "end", "ended", "stop", "finish", "finished", "begin", "created", "updated", "at"),
        "timestamp",
    )
)
_BEFORE_A_UNIT = frozenset(("", "total", "mean", "elapsed", "time", "latency", "duration"))
_RATES = frozenset(("latency", "throughput", "fps"))
_DAY = 86400.0

spent: float | None = None
"""The seconds that the outermost fits of this process took so far, None if there were none."""


def add(seconds: float) -> None:
    """Note that an outermost fit took so long."""
    global spent
    spent = (spent or 0.0) + seconds


def is_clock(name: str, value: Any) -> bool:
    """Return whether this is a time that a fit took or a date at which it ran: its name and its value both allow it.

    ``fit_time`` and ``elapsed_seconds`` are such names, ``arrival_time`` and ``mean_lifetime`` are none.
    """
    if type(value).__module__ == "datetime":
        return _is_recent(value)
    words = _words(name)
    alone = words[-1] in _ALONE
    if not alone and not (words[-1] in _UNITS and words[-2] in _OF_A_FIT):
        return False
    if isinstance(value, str):
        return time.strftime("%Y-%m-%d") in value
    if words[-1] == "times" and type(value) is int:  # which is how often
        return False
    numbers = _numbers(value)
    moment = not _MOMENTS.isdisjoint(words)
    return bool(numbers) and all(
        [_may_be_measured(number, 1 if alone or moment else 1e3, moment) for number in numbers]
    )


def is_measured(name: str, value: Any) -> bool:
    """Return whether this is a time or a rate that a test measured of itself, by its name and its value together."""
    if is_clock(name, value):
        return True
    words = _words(name)
    if words[-2] in _BEFORE_A_UNIT and words[-1] in _UNITS:
        return all([_is_duration(number) for number in _numbers(value) or (-1.0,)])
    rate = words[-1] in _RATES or "per" in name.lower().split("_")
    return rate and all([number > 0 for number in _numbers(value) or (-1.0,)])


def _is_duration(number: float) -> bool:
    """Return whether something in this process may have taken so long, in seconds or milliseconds."""
    lived = time.clock_gettime(time.CLOCK_BOOTTIME) - _started() if hasattr(time, "CLOCK_BOOTTIME") else math.inf
    return 0 <= number <= 1e3 * lived


def _started() -> float:
    """Return when this process started, in seconds since the boot of the machine; 0 if that is unknown."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0


def _words(name: str) -> list[str]:
    """Return the words of a name up to its unit: those of ``secPerEpoch`` and ``sec_per_epoch`` are ``elapsed, sec``.

    A single word that is no unit of a rate, such as ``time``, is no word of a fit.
    """
    split = "".join(["_" + one if one.isupper() and before.islower() else one for before, one in zip("_" + name, name)])
    words = [word for word in split.lower().split("_") if word] or [""]
    if "per" in words[1:]:
        return ["elapsed", *words[: words.index("per", 1)]]
    return words if len(words) > 1 else ["", *words]


def _numbers(value: Any) -> list[float]:
    """Return the numbers in a number, an array, or a list of numbers; none if it is something else."""
    if isinstance(value, (list, tuple)):
        return [float(one) for one in value] if {*map(type, value)} <= {int, float} else []
    if type(value) in (int, float):
        return [float(value)]
    if hasattr(value, "__array__") and getattr(getattr(value, "dtype", None), "kind", "") in tuple("fiu"):
        array = sys.modules["numpy"].asarray(value)
        return [float(one) for one in array.ravel().tolist()]
    return []


def _may_be_measured(number: float, largest: float = 1, moment: bool = False) -> bool:
    """Return whether this may be how long fits took so far, in units up to ``largest``, or a ``moment`` near now."""
    if math.isnan(number):
        return True  # of a fit that failed
    most = math.inf if spent is None else spent * (os.cpu_count() or 1) + 0.01
    if 0 <= number <= most * largest:
        return True
    clocks = (time.time(), time.perf_counter(), time.monotonic()) if moment else ()
    units = (1, 1e3, 1e9) if number > _DAY else (1,)
    near = _DAY if spent is None else spent + 60
    return any([abs(number - clock * unit) <= near * unit for clock in clocks for unit in units])


def _is_recent(value: Any) -> bool:
    """Return whether a date is near now, or a difference of two dates may be how long a fit took."""
    if hasattr(value, "total_seconds"):
        return _may_be_measured(value.total_seconds())
    today = sys.modules["datetime"].date.today()
    return hasattr(value, "toordinal") and abs(value.toordinal() - today.toordinal()) <= 1
