"""What a number of runs proves, and the verdict on groups."""

import math
from collections import Counter
from collections.abc import Callable, Iterable

from detaudit.model import VERDICTS, Confidence, DifferingShare, Evidence, Verdict

# How sure an answer must be, and how likely matching runs miss a difference.


ERROR_RATE = 0.05
"""The accepted probability of a wrong answer, by default."""

RAREST = 0.25
"""The rate of differing runs that an answer must notice: 1 run in 4."""

PROBE_ERROR = 0.2
"""The accepted probability that a match on the way to an answer is wrong: it is tested again before it counts."""


def miss_probability(matching: int, rate: float) -> float:
    """Return the probability that a difference of this rate does not show up in this number of matching runs."""
    return float((1 - rate) ** max(0, matching - 1))


def at_most(number: int, runs: int, rate: float) -> float:
    """Return the probability that at most ``number`` of ``runs`` differ if each does with this rate."""
    if rate in (0, 1):
        return 1.0 if rate == 0 or number >= runs else 0.0
    ways = (math.lgamma(runs + 1) - math.lgamma(k + 1) - math.lgamma(runs - k + 1) for k in range(number + 1))
    return math.fsum(math.exp(n + k * math.log(rate) + (runs - k) * math.log1p(-rate)) for k, n in enumerate(ways))


# What a number of runs proves: one mismatch is proof, matching runs are evidence.


LEVEL = 0.95

FEWEST = 10
"""The number of runs from which on a rate says something."""


def confidence(matching: int, level: float = LEVEL) -> Confidence | None:
    """Return what ``matching`` runs prove, None for fewer than two.

    If a run differs from the first with probability p, n - 1 of them all match it with probability (1 - p)**(n - 1);
    at confidence c that bounds p by 1 - (1 - c)**(1 / (n - 1)).
    """
    if matching < 2:
        return None
    return Confidence(level=level, max_differing_rate=1 - (1 - level) ** (1 / (matching - 1)))


def evidence(matching: int, through: int | None = None, complete: int | None = None) -> Evidence:
    """Return what an answer rests on that this number of matching runs confirms.

    They match ``through`` a step and ``complete`` of them to their ends, or all to their ends if both are None.
    """
    return Evidence(
        runs=matching,
        confidence=confidence(matching),
        assumed_rate=RAREST,
        miss_probability=miss_probability(matching, RAREST),
        through=through,
        whole=complete,
        whole_confidence=None if complete is None else confidence(complete),
    )


def differing_share(results: Iterable[int], level: float = LEVEL) -> DifferingShare | None:
    """Return how often a run has another result than the most frequent one, None if they match or are fewer than ten.

    The bounds are those of Clopper and Pearson: rates at which so many runs, or so few, differ with (1 - level) / 2.
    """
    counts = Counter(results)
    runs, most = counts.total(), max(counts.values(), default=0)
    if runs < FEWEST or most == runs:
        return None
    differing, tail = runs - most, (1 - level) / 2
    least = _rate(lambda rate: 1 - at_most(differing - 1, runs, rate) < tail)
    greatest = _rate(lambda rate: at_most(differing, runs, rate) > tail) if differing < runs else 1.0
    return DifferingShare(runs=runs, differing=differing, level=level, least=least, most=greatest)


def _rate(below: Callable[[float], bool]) -> float:
    """Return the greatest rate for which ``below`` holds; it does for all below that."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low


def of_runs(finished: int, planned: int, distinct: int) -> Verdict:
    """Return the verdict on a group: two different results are proof, whatever else failed."""
    if distinct > 1:
        return Verdict.NONDETERMINISTIC
    if finished >= 2 and finished == planned:
        return Verdict.DETERMINISTIC
    return Verdict.INCONCLUSIVE


def of_groups(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on an audit: the worst verdict of its groups."""
    return min(verdicts, key=list(VERDICTS).index, default=Verdict.INCONCLUSIVE)
