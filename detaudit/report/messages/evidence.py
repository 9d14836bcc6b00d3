"""What matching runs prove."""

import math

from detaudit.model import Confidence, DifferingShare, Evidence
from detaudit.model.evidence import runs_needed
from detaudit.model.fact import count

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


def share(found: DifferingShare) -> str:
    """Return how often a run has another result than the most frequent one."""
    return (
        f"{found.differing:,} of {count(found.runs, 'run')} differ from the most frequent result "
        f"({found.level:.0%} confidence: between {found.least:.1%} and {found.most:.1%} of runs)"
    )


RATE_OF_LATE = 0.5
"""The rate at which later differences are noticed by the number of whole runs that is suggested."""


def bit_identical(found: Evidence, flags: str) -> str:
    """Return how many runs with these flags match, and how far."""
    runs = f"{count(found.runs, 'run')} {flags} are bit-identical"
    if found.through is None:
        return runs
    return f"{runs} through step {found.through:,}, {found.whole or 0:,} of them to the end"


def may_go_unnoticed(found: Evidence) -> str:
    """Return the probability that the runs behind an answer hide a difference."""
    rate = f"1 run of {1 / found.assumed_rate:.0f}"
    by = f" by step {found.through:,}" if found.through is not None else ""
    return f"a difference that shows up in {rate}{by} would go unnoticed with probability {found.miss_probability:.1%}"


def begins_later(found: Evidence) -> str:
    """Return what a few whole runs may miss, ``""`` if all runs went to their ends."""
    if found.through is None or found.whole_confidence is None:
        return ""
    percent = math.ceil(round(100 * found.whole_confidence.max_differing_rate, 6))
    whole = runs_needed(1 - found.whole_confidence.level, RATE_OF_LATE)
    hint = f"; --full {whole} would catch {RATE_OF_LATE:.0%}" if (found.whole or 0) < whole else ""
    return (
        f"one that begins after step {found.through:,} may go unnoticed if it shows up in fewer than {percent}% of runs"
        f" ({found.whole_confidence.level:.0%} confidence){hint}"
    )
