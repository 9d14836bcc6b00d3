"""How sure an answer must be, and how likely matching runs miss a difference."""

import math

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
