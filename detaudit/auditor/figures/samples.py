"""Take samples of the losses of the runs of a group, for programs that draw curves themselves."""

import math
from collections.abc import Iterator, Mapping

from detaudit.auditor.figures.bins import bins
from detaudit.auditor.figures.losses import first_difference, held
from detaudit.model import Number, RunRecord
from detaudit.model.figures import LossSamples

MOST_RANKS = 8
"""Ranks of a run whose losses are sampled."""


def samples(records: Mapping[int, RunRecord]) -> tuple[LossSamples, ...]:
    """Return samples of the losses of runs, by number, of which the first is the one that others are compared with.

    A short training has all of its losses. A long one has those around the first differences, and a few hundred more.
    """
    return tuple(one for rank in range(MOST_RANKS) for one in _of_rank(rank, _recorded(records, rank)))


def _recorded(records: Mapping[int, RunRecord], rank: int) -> dict[int, dict[int, Number]]:
    return {run: found for run, found in held(records, rank).items() if found}


def _of_rank(rank: int, sides: Mapping[int, Mapping[int, Number]]) -> Iterator[LossSamples]:
    if not sides:
        return
    base = next(iter(sides))
    reference = sides[base]
    steps = sorted({step for side in sides.values() for step in side})
    marks = [first_difference(steps, reference, side) for run, side in sides.items() if run != base]
    wanted = [first for first, _ in bins(steps, [mark for mark in marks if mark is not None])]
    for run, side in sides.items():
        kept = sorted({*(step for step in wanted if step in side), max(side)})
        yield LossSamples(
            run=run,
            rank=rank,
            steps=tuple(kept),
            losses=tuple(side[step] for step in kept),
            distances=tuple(_distance(reference.get(step), side[step]) for step in kept) if run != base else (),
        )


def _distance(a: Number, b: Number) -> float | None:
    if not isinstance(a, float | int) or not isinstance(b, float | int):
        return None
    apart = abs(a - b)
    return apart if math.isfinite(apart) else None
