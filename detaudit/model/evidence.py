"""What matching runs prove, and how many of them prove enough."""

import math
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

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
