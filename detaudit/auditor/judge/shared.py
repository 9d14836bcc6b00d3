"""What two parts of runs that are compared both recorded."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from detaudit.auditor.judge.pairing import RESULTS, Matched
from detaudit.model import Difference, Stage, blocks
from detaudit.model.blocks import BlockedSteps


def in_blocks(pair: Matched, stage: Stage) -> tuple[BlockedSteps, BlockedSteps]:
    """Return the digests of a stage on both sides."""
    return blocks.in_blocks(pair.a.digests.get(stage, {})), blocks.in_blocks(pair.b.digests.get(stage, {}))


Found = tuple[int, Stage, tuple[str, ...], tuple[str, ...]]
"""A step, a stage, and what both sides recorded there."""


def shared_digests(pair: Matched) -> Iterator[Found]:
    """Yield step, stage and both digests of all that both sides recorded, in the order of time."""
    for block in shared_blocks(pair):
        yield from block


def shared_blocks(pair: Matched, *, last: int | None = None) -> Iterator[list[Found]]:
    """Yield the same by block; if ``last`` is a step, its block first and then all before it, from the last on."""
    both = pair.a.digests.keys() & pair.b.digests.keys()
    sides = [(stage, *in_blocks(pair, stage)) for stage in Stage if stage in both]
    numbers = sorted({number for _, a, b in sides for number in a.digests.keys() & b.digests.keys()})
    if last is not None:
        numbers = [number for number in reversed(numbers) if number <= blocks.block_of(last)]
    for number in numbers:
        block = [(stage, a.block(number), b.block(number)) for stage, a, b in sides]
        steps = sorted({step for _, a, b in block for step in a.keys() & b.keys()})
        yield [(step, stage, a[step], b[step]) for step in steps for stage, a, b in block if step in a and step in b]


@dataclass
class Shared:
    """What both sides recorded of one rank: the stages, and the number of steps, from the first, that have a result.

    ``before`` is the last step before the first difference, ``there`` are the stages at it.
    """

    stages: set[Stage] = field(default_factory=set)
    steps: int = 0
    before: int = 0
    there: set[Stage] = field(default_factory=set)


def shared_of(pair: Matched, differs: Difference | None) -> Shared:
    """Return what both sides recorded of a rank; ``differs`` is where they first differ."""
    found, counted = Shared(), 0
    at = differs.step if differs else -1
    for step, stage, *_ in shared_digests(pair):
        found.stages.add(stage)
        if step > counted and stage in RESULTS:
            found.steps, counted = found.steps + 1, step
        if step < at:
            found.before = step
        elif step == at:
            found.there.add(stage)
    return found
