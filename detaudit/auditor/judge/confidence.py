"""How many matching runs an answer needs: agreement is evidence, and evidence has a strength."""

import math

ERROR_RATE = 0.05
"""How often an answer may be wrong by default."""

RAREST = 0.25
"""The rate of deviating runs that an answer must notice: one run of four."""

PROBE_ERROR = 0.2
"""How often an agreement on the way to an answer may be wrong: it is tested again before it counts."""


def runs_needed(error: float, rate: float) -> int:
    """Return how many runs must match so that deviations are overlooked with probability ``error`` at most.

    ``rate`` is how often a run deviates from the first, if any does: n runs hide that with (1 - rate)**(n - 1).
    """
    if rate >= 1:
        return 2
    return max(2, 1 + math.ceil(math.log(error) / math.log1p(-rate)))


def overlooked(matching: int, rate: float) -> float:
    """Return the probability that deviations of this rate do not show in so many matching runs."""
    return float((1 - rate) ** max(0, matching - 1))
