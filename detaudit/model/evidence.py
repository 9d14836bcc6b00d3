"""What matching runs prove, and how many of them prove enough."""

import math
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from detaudit.model.fact import count

_Rate: TypeAlias = Annotated[float, Meta(gt=0, le=1)]


class Confidence(msgspec.Struct, frozen=True, kw_only=True):
    """n matching runs: at ``level``, the rate of differing runs is at most ``max_differing_rate``."""

    level: Annotated[float, Meta(gt=0, lt=1)]
    max_differing_rate: _Rate


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What the answer rests on: ``runs`` that match, through the step ``through`` or, if that is null, to their ends.

    ``miss_probability`` is the probability that they hide a difference that shows up in ``assumed_rate`` of the runs by
    then. ``whole`` of the runs went to their ends, which gives ``whole_confidence`` in what begins later. ``trial`` is
    the one that these are the runs of.
    """

    runs: int
    confidence: Confidence | None
    assumed_rate: _Rate
    miss_probability: float
    through: int | None = None
    whole: int | None = None
    whole_confidence: Confidence | None = None
    trial: str | None = None


class DifferingShare(msgspec.Struct, frozen=True, kw_only=True):
    """How often a run has another result than the most frequent one: in ``differing`` of ``runs``.

    At ``level``, the rate lies between ``least`` and ``most`` (Clopper-Pearson).
    """

    runs: int
    differing: int
    level: Annotated[float, Meta(gt=0, lt=1)]
    least: Annotated[float, Meta(ge=0, le=1)]
    most: Annotated[float, Meta(ge=0, le=1)]


def runs_needed(error: float, rate: float) -> int:
    """Return how many runs must match so that a difference goes unnoticed with probability ``error`` at most.

    ``rate`` is how often a run differs from the first, if any does: n runs hide that with (1 - rate)**(n - 1).
    """
    if rate >= 1:
        return 2
    return max(2, 1 + math.ceil(math.log(error) / math.log1p(-rate)))


RATE_TO_CATCH = 0.1
"""The rate of differing runs up to which more runs are suggested."""


def would_catch(confidence: Confidence, runs: int, through: int | None = None, earlier: int = 0) -> str:
    """Return how rare a difference so many matching runs would have caught, and how many runs would catch more.

    Runs that were ended catch what shows up ``through`` a step. ``earlier`` of the runs are those of earlier audits.
    """
    percent = math.ceil(round(100 * confidence.max_differing_rate, 6))
    by = f" by step {through:,}" if through is not None else ""
    of_earlier = f", {earlier:,} of them in earlier audits," if earlier else ""
    shows = f"a difference that shows up{by} in {percent}% of runs or more"
    caught = f"{count(runs, 'run')}{of_earlier} would catch {shows}"
    more = runs_needed(1 - confidence.level, RATE_TO_CATCH)
    hint = f"; --runs {more} would catch {RATE_TO_CATCH:.0%}" if runs < more else ""
    return f"{caught} ({confidence.level:.0%} confidence){hint}"


def share_sentence(differing_share: DifferingShare) -> str:
    """Return how often a run has another result than the most frequent one."""
    return (
        f"{differing_share.differing:,} of {count(differing_share.runs, 'run')} differ from the most frequent result "
        f"({differing_share.level:.0%} confidence: between {differing_share.least:.1%} and {differing_share.most:.1%} "
        "of runs)"
    )


RATE_OF_LATE = 0.5
"""The rate at which later differences are noticed by the number of whole runs that is suggested."""


def bit_identical(evidence: Evidence, flags: str) -> str:
    """Return how many runs with these flags match, and how far."""
    runs = f"{count(evidence.runs, 'run')} {flags} are bit-identical"
    if evidence.through is None:
        return runs
    return f"{runs} through step {evidence.through:,}, {evidence.whole or 0:,} of them to the end"


def may_go_unnoticed(evidence: Evidence) -> str:
    """Return the probability that the runs behind an answer hide a difference."""
    rate = f"1 run of {1 / evidence.assumed_rate:.0f}"
    by = f" by step {evidence.through:,}" if evidence.through is not None else ""
    return (
        f"a difference that shows up in {rate}{by} would go unnoticed with probability {evidence.miss_probability:.1%}"
    )


def begins_later(evidence: Evidence) -> str:
    """Return what a few whole runs may miss, ``""`` if all runs went to their ends."""
    if evidence.through is None or evidence.whole_confidence is None:
        return ""
    percent = math.ceil(round(100 * evidence.whole_confidence.max_differing_rate, 6))
    full_runs = runs_needed(1 - evidence.whole_confidence.level, RATE_OF_LATE)
    hint = f"; --full {full_runs} would catch {RATE_OF_LATE:.0%}" if (evidence.whole or 0) < full_runs else ""
    return (
        f"one that begins after step {evidence.through:,} may go unnoticed if it shows up in fewer than {percent}% of "
        f"runs ({evidence.whole_confidence.level:.0%} confidence){hint}"
    )
