"""What a flag costs, from runs with it and without it that were next to each other in time; pure."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from detaudit.judge.policy import Flags

LEAST_PAIRS = 3
"""Fewer pairs of runs say nothing."""

PAIRS = 6
"""How many pairs ``--costs`` measures: the fewest whose range has the median in it with 95% confidence."""

_ERROR = 0.05


@dataclass(frozen=True)
class Timing:
    """How long a run took that set these flags: ``step_s`` for a step, None if too few were seen.

    ``wall_s`` is its whole time, None if it did not finish. It is compared only with that of a run of the same
    ``length``, and a run only with one of the same ``machine``.
    """

    flags: Flags
    step_s: float | None = None
    wall_s: float | None = None
    length: tuple[int, int | None] = (0, None)
    machine: str = ""


@dataclass(frozen=True)
class Cost:
    """How many times as long a training takes with a flag: the median of ``pairs`` ratios, and their range."""

    factor: float
    least: float
    most: float
    pairs: int


def cost(timings: Iterable[Timing], flags: Flags, bare: Flags) -> Cost | None:
    """Return what ``flags`` cost over ``bare``; None if fewer than LEAST_PAIRS pairs were timed.

    A pair are two runs next to each other, one of each kind, so that both had the same machine with the same load. The
    time of a step counts, that of whole runs of one length if too few pairs have steps.
    """
    pairs = _pairs(timings, flags, bare)
    for ratios in ([_of_steps(*pair) for pair in pairs], [_of_runs(*pair) for pair in pairs]):
        known = [ratio for ratio in ratios if ratio is not None]
        if len(known) >= LEAST_PAIRS:
            least, most = interval(known)
            return Cost(statistics.median(known), least, most, len(known))
    return None


def _pairs(timings: Iterable[Timing], flags: Flags, bare: Flags) -> list[tuple[Timing, Timing]]:
    """Return the pairs, first the run with the flags; no run is in two of them."""
    pairs, last = list[tuple[Timing, Timing]](), None
    for timing in timings:
        if last is not None and {last.flags, timing.flags} == {flags, bare} and _comparable(last, timing):
            pairs.append((timing, last) if timing.flags == flags else (last, timing))
            last = None
        else:
            last = timing
    return pairs


def _comparable(a: Timing, b: Timing) -> bool:
    return a.machine == b.machine and (_of_steps(a, b) or _of_runs(a, b)) is not None


def _of_steps(with_it: Timing, without: Timing) -> float | None:
    return with_it.step_s / without.step_s if with_it.step_s and without.step_s else None


def _of_runs(with_it: Timing, without: Timing) -> float | None:
    if with_it.length != without.length or not with_it.wall_s or not without.wall_s:
        return None
    return with_it.wall_s / without.wall_s


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Return between which of the ratios their true median is, with 95% confidence if there are six or more.

    The k-th smallest and the k-th largest of n enclose it unless fewer than k are on one side of it, which has the
    probability 2 P(Binomial(n, 1/2) < k), whatever the distribution (the sign test). k is the largest for which that is
    at most 5%. For fewer than six there is none: then it is the whole range, with a confidence of 75% for three and 94%
    for five.
    """
    ordered, n = sorted(ratios), len(ratios)
    tail, k = 1.0, 0  # in units of 2 ** -n
    while 2 * tail <= _ERROR * 2.0**n and k < n:
        k += 1
        tail += math.comb(n, k)
    k = max(k, 1)
    return ordered[k - 1], ordered[n - k]
