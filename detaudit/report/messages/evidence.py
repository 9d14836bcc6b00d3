"""What matching runs prove."""

import math

from detaudit.model import Confidence, Evidence
from detaudit.model.evidence import runs_needed
from detaudit.model.number import count

RATE_TO_CATCH = 0.1
"""The rate of differing runs up to which more runs are suggested."""


def would_catch(found: Confidence, runs: int, through: int | None = None) -> str:
    """Return how rare a difference so many matching runs would have caught, and how many runs would catch more.

    Runs that were ended catch what shows up ``through`` a step.
    """
    percent = math.ceil(round(100 * found.max_differing_rate, 6))
    by = f" by step {through:,}" if through is not None else ""
    caught = f"{count(runs, 'run')} would catch a difference that shows up{by} in {percent}% of runs or more"
    more = runs_needed(1 - found.level, RATE_TO_CATCH)
    hint = f"; --runs {more} would catch {RATE_TO_CATCH:.0%}" if runs < more else ""
    return f"{caught} ({found.level:.0%} confidence){hint}"


def may_go_unnoticed(found: Evidence) -> str:
    """Return the probability that the runs behind an answer hide a difference."""
    rate = f"1 run of {1 / found.assumed_rate:.0f}"
    return f"a difference that shows up in {rate} would go unnoticed with probability {found.miss_probability:.1%}"
