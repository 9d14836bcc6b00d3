"""In which stages and steps the runs of a group differ."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from detaudit.model import UNHOOKED, Difference, RunRecord, Stage, blocks
from detaudit.model.blocks import BlockedSteps
from detaudit.model.figures import Ladder, LadderRow, Steps

MOST = 14
"""Columns."""

MOST_FIRST = 3
"""Places where runs first differ that have columns around them."""

Sides = Mapping[int, BlockedSteps]
"""The digests of one stage by run."""


def ladder(records: Mapping[int, RunRecord], first: Iterable[Difference], rank: int) -> Ladder | None:
    """Return how many different digests runs, by number, have; ``first`` is where some of them first differ.

    Return None if there are no steps of this rank, or fewer than two runs: one matches nothing.
    """
    held = {run: record.parts[rank] for run, record in records.items() if rank < len(record.parts)}
    stages = [stage for stage in Stage if stage not in UNHOOKED]
    digests: dict[Stage, Sides] = {
        stage: {run: blocks.in_blocks(part.digests.get(stage, {})) for run, part in held.items()} for stage in stages
    }
    digests = {stage: sides for stage, sides in digests.items() if any(sides.values())}
    last = max((part.steps for part in held.values()), default=0)
    if not digests or not last or len(held) < 2:
        return None
    marks = list(
        dict.fromkeys(
            (one.stage, one.step) for one in first if one.rank == rank and not one.at_end and one.output is None
        )
    )
    recorded = (
        []
        if last > 4 * MOST
        else sorted(set(blocks.steps(side for sides in digests.values() for side in sides.values())))
    )
    columns = tuple(_columns(recorded, [step for _, step in marks], last, zero=_has(digests, 0)))
    # All stages of a column are counted before the next one: their steps are in the same blocks of an event log.
    counts = [[_count(list(sides.values()), column) for sides in digests.values()] for column in columns]
    return Ladder(
        runs=tuple(held),
        columns=columns,
        rows=tuple(
            LadderRow(stage=stage, counts=tuple(column[place] for column in counts))
            for place, stage in enumerate(digests)
        ),
        first=tuple(marks),
    )


def _has(digests: Mapping[Stage, Sides], step: int) -> bool:
    return any(step in side for sides in digests.values() for side in sides.values())


def _columns(recorded: Sequence[int], marks: Iterable[int], last: int, *, zero: bool) -> Iterator[Steps]:
    """Yield the steps of each column: all recorded ones if they fit, else the start, those around marks, the end."""
    if recorded and len(recorded) <= MOST:
        yield from ((step, step) for step in recorded)
        return
    firsts = sorted(set(marks))[:MOST_FIRST]
    wanted = {1, 2, last, *(step + by for step in firsts for by in (-1, 0, 1))} if firsts else {1, 2, 3, last}
    before = -1 if zero else 0
    for step in sorted(step for step in wanted | ({0} if zero else set()) if before < step <= last):
        if step > before + 1:
            yield before + 1, step - 1
        yield step, step
        before = step


def _any_step(side: BlockedSteps, number: int, column: Steps) -> bool:
    """Return whether a block has a step of a column. It is read only if it is not wholly inside of it."""
    first, last = column
    whole = first <= blocks.start(number) and blocks.start(number + 1) - 1 <= last
    return whole or any(first <= step <= last for step in side.block(number))


def _count(sides: Sequence[BlockedSteps], column: Steps) -> int | None:
    """Return the greatest number of different digests that the runs have at a step of a column.

    Return None if those that are known match, and some are not known: the run was ended, or has no such step.
    """
    first, last = column
    numbers = sorted({number for side in sides for number in side.digests})
    greatest, known = 0, True
    for number in numbers:
        if blocks.start(number) > last or blocks.start(number + 1) <= first:
            continue
        different = len({side.digests.get(number) for side in sides})
        if different == 1:  # all steps of the block match
            greatest = greatest or int(_any_step(sides[0], number, column))
            continue
        if 1 < greatest >= different:  # no step of the block has more digests
            continue
        held = [side.block(number) for side in sides]
        most = len({tuple(side.items()) for side in held})
        for step in sorted({step for side in held for step in side if first <= step <= last}):
            found = [side.get(step) for side in held]
            known = known and None not in found
            greatest = max(greatest, len({*found} - {None}))
            if greatest >= most:
                break
        if greatest >= len(sides):
            break
    return greatest if greatest > 1 or (greatest and known) else None
