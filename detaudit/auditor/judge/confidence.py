"""How many matching runs an answer needs, and how likely they miss a difference."""

import math

ERROR_RATE = 0.05
"""The accepted probability of a wrong answer, by default."""

RAREST = 0.25
"""The rate of differing runs that an answer must notice: 1 run in 4."""

PROBE_ERROR = 0.2
"""The accepted probability that a match on the way to an answer is wrong: it is tested again before it counts."""


def runs_needed(error: float, rate: float) -> int:
    """Return how many runs must match so that a difference goes unnoticed with probability ``error`` at most.

    ``rate`` is how often a run differs from the first, if any does: n runs hide that with (1 - rate)**(n - 1).
    """
    if rate >= 1:
        return 2
    return max(2, 1 + math.ceil(math.log(error) / math.log1p(-rate)))


def miss_probability(matching: int, rate: float) -> float:
    """Return the probability that a difference of this rate does not show up in this number of matching runs."""
    return float((1 - rate) ** max(0, matching - 1))
