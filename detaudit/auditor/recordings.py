"""Recordings: made of what a run was compared by, thinned out for a baseline, and compared with each other."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from detaudit.auditor.compare import LADDER, RESULT, unlike_names
from detaudit.auditor.traces import Stream
from detaudit.model import NAMED, OUTSIDE, Difference, Recipe, Recording, Run, Stage, Trained, as_number

KEPT_STEPS = 64
"""How many steps of each stage a baseline keeps, beside the powers of two."""

_JOINT = "; "

T = TypeVar("T")


def record(
    command: Sequence[str], recipe: Recipe, environment: Mapping[str, str], run: Run, streams: Sequence[Stream]
) -> Recording:
    """Return what ``run`` recorded; ``streams`` are those that it was compared by."""
    ranks = tuple(
        Trained(
            record=rank,
            sparse=stream.final is not None and stream.final.sparse,
            marks=_marks(stream),
            losses={step: as_number(float.fromhex(value)) for step, value in sorted(stream.losses.items())},
        )
        for rank, stream in zip(run.ranks, streams, strict=True)
    )
    return Recording(command=tuple(command), recipe=recipe, environment=dict(environment), ranks=ranks)


def _marks(stream: Stream) -> dict[Stage, dict[int, str]]:
    marks: dict[Stage, dict[int, str]] = {}
    for step, stages in sorted(stream.stages.items()):
        for stage, digests in stages.items():
            marks.setdefault(stage, {})[step] = _JOINT.join(digests)
    return marks


def thinned(recording: Recording) -> Recording:
    """Return a recording with some steps only: the first two, powers of two, the last, and about KEPT_STEPS between."""
    tell = msgspec.structs.replace
    ranks = []
    for rank in recording.ranks:
        marks = {stage: _thin(steps) for stage, steps in rank.marks.items()}
        ranks.append(tell(rank, marks=marks, losses=_thin(rank.losses)))
    return tell(recording, ranks=tuple(ranks))


def _thin(steps: Mapping[int, T]) -> dict[int, T]:
    stride, last = max(steps, default=0) // KEPT_STEPS + 1, max(steps, default=0)
    return {
        step: value for step, value in steps.items() if step & (step - 1) == 0 or step % stride == 0 or step == last
    }


def same(a: Recording, b: Recording) -> bool:
    """Whether both ended alike and came there alike, bit for bit, as far as the same steps were kept of both."""
    return [rank.record for rank in a.ranks] == [rank.record for rank in b.ranks] and not any(
        ours != theirs
        for pair in zip(a.ranks, b.ranks, strict=True)
        for _, stage, ours, theirs in _pairs(*pair)
        if stage in RESULT
    )


def first_difference(a: Recording, b: Recording) -> Difference | None:
    """Return where two recordings that are not the same first differ, None where they are."""
    if same(a, b):
        return None
    found = [d for rank, pair in enumerate(zip(a.ranks, b.ranks, strict=False)) if (d := _first(rank, *pair))]
    if not found or len(a.ranks) != len(b.ranks):
        missing = Difference(rank=min(len(a.ranks), len(b.ranks)), step=0, stage=Stage.STEPS)
        found = found if len(a.ranks) == len(b.ranks) else [*found, missing]
    return min(found, key=lambda d: d.order, default=None)


def equal_until(a: Recording, b: Recording, differs: Difference) -> int | None:
    """Return the last step before a difference at which its stage was kept of both, None where there is none."""
    if differs.rank >= min(len(a.ranks), len(b.ranks)):
        return None
    ours, theirs = (side.ranks[differs.rank].marks.get(differs.stage, {}) for side in (a, b))
    return max((step for step in ours if step in theirs and step < differs.step), default=None)


def _pairs(a: Trained, b: Trained) -> Iterator[tuple[int, Stage, str, str]]:
    """Yield step, stage and both digests wherever both sides kept one, in the order of time."""
    both = [
        (step, stage)
        for stage in (*LADDER, *OUTSIDE)
        for step in a.marks.get(stage, {})
        if step in b.marks.get(stage, {})
    ]
    for step, stage in sorted(both, key=lambda one: (one[0], one[1].place)):
        yield step, stage, a.marks[stage][step], b.marks[stage][step]


def _first(rank: int, a: Trained, b: Trained) -> Difference | None:
    for step, stage, ours, theirs in _pairs(a, b):
        if ours != theirs:
            return Difference(rank=rank, step=step, stage=stage, site=_site(stage, ours, theirs))
    if a.record.steps != b.record.steps:
        return Difference(rank=rank, step=min(a.record.steps, b.record.steps) + 1, stage=Stage.STEPS)
    if a.record != b.record:  # equal at every step that was kept, different at the end
        return Difference(rank=rank, step=a.record.steps, stage=Stage.UPDATE)
    return None


def _site(stage: Stage, ours: str, theirs: str) -> str | None:
    return unlike_names(ours.split(_JOINT), theirs.split(_JOINT)) if stage in NAMED else None
