"""Recordings: made of what a run was compared by, thinned out for a baseline, and compared with each other."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from detaudit.auditor.evidence.event_logs import Stream
from detaudit.auditor.judge.streams import LADDER, RESULT, unlike_names
from detaudit.model import (
    NAMED,
    OUTSIDE,
    Artifact,
    Difference,
    RankRecord,
    Recipe,
    Recording,
    Run,
    Stage,
    Trained,
    Weight,
    as_number,
    digits,
)

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
            marks=_files(run.artifacts) if stream.framework == Stage.ARTIFACT else _marks(stream),
            losses={step: as_number(float.fromhex(value)) for step, value in sorted(stream.losses.items())},
            weights=_weights(stream),
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


def _files(artifacts: Sequence[Artifact]) -> dict[Stage, dict[int, str]]:
    """Return files as marks, one digest each: an audit keeps no more of them, and a baseline stays small."""
    return {Stage.ARTIFACT: {0: _JOINT.join(f"{file.digest} {file.path}" for file in artifacts)}}


def _weights(stream: Stream) -> tuple[Weight, ...]:
    return tuple(
        Weight(dtype=dtype, shape=shape, digest=digest, sum=as_number(float.fromhex(total)))
        for dtype, shape, digest, total in (stream.final.weights if stream.final else ())
    )


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


def asked(recording: Recording) -> dict[str, str]:
    """Return what a recording was asked for, by name, as text."""
    flags = ", ".join(sorted(recording.recipe.flags))
    return {"command": " ".join(recording.command), "seed": str(recording.recipe.seed), "flags": flags}


Pair = tuple[int, Trained, Trained]
"""The rank on the first side, and both sides of it."""


def pairs(a: Recording, b: Recording) -> list[Pair]:
    """Return what is compared: trainings in their order, then printed losses and files with their like."""
    inside = [(ours.record.rank, ours, theirs) for ours, theirs in zip(trainings(a), trainings(b), strict=False)]
    ours, theirs = _outside(a), _outside(b)
    return inside + [(ours[kind].record.rank, ours[kind], theirs[kind]) for kind in ours if kind in theirs]


def trainings(recording: Recording) -> list[Trained]:
    """Return what hooks saw of a recording."""
    return [rank for rank in recording.ranks if rank.record.framework not in OUTSIDE]


def _outside(recording: Recording) -> dict[str, Trained]:
    return {rank.record.framework: rank for rank in recording.ranks if rank.record.framework in OUTSIDE}


def same(a: Recording, b: Recording) -> bool:
    """Whether both ended alike and came there alike, bit for bit, as far as the same steps were kept of both."""
    matched = pairs(a, b)
    return len(matched) == len(a.ranks) == len(b.ranks) and not any(
        _result(ours.record) != _result(theirs.record)
        or any(x != y for _, stage, x, y in marks(ours, theirs) if stage in RESULT)
        for _, ours, theirs in matched
    )


def _result(record: RankRecord) -> tuple[str, int, str, str | None]:
    """Return what must be equal of two records.

    Not where the weights live, nor their sum, whose order of additions is the device's own: the digest has every bit.
    """
    return record.framework, record.steps, digits(record.final_loss), record.digest


def first_difference(a: Recording, b: Recording) -> Difference | None:
    """Return where two recordings that are not the same first differ, None where they are."""
    if same(a, b):
        return None
    matched = pairs(a, b)
    found = [d for pair in matched if (d := _first(*pair))]
    if not len(matched) == len(a.ranks) == len(b.ranks):
        count = min(len(trainings(a)), len(trainings(b)))
        found.append(Difference(rank=count, step=0, stage=Stage.STEPS))
    return min(found, key=lambda d: d.order, default=None)


def equal_until(a: Recording, b: Recording, differs: Difference) -> int | None:
    """Return the last step up to a difference at which its stage is equal on both, None where there is none.

    Where one side has no such step, any result counts.
    """
    pair = next(((ours, theirs) for rank, ours, theirs in pairs(a, b) if rank == differs.rank), None)
    if pair is None or (differs.stage is Stage.STEPS and differs.step == 0):
        return None
    stages = RESULT if differs.stage is Stage.STEPS else {differs.stage}
    equal = (step for step, stage, x, y in marks(*pair) if stage in stages and step <= differs.step and x == y)
    return max(equal, default=None)


def marks(a: Trained, b: Trained) -> Iterator[tuple[int, Stage, str, str]]:
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
    for step, stage, ours, theirs in marks(a, b):
        if ours != theirs:
            return Difference(rank=rank, step=step, stage=stage, site=_site(stage, ours, theirs))
    if a.record.steps != b.record.steps:
        return Difference(rank=rank, step=min(a.record.steps, b.record.steps) + 1, stage=Stage.STEPS)
    if _result(a.record) != _result(b.record):  # equal at every step that was kept, different at the end
        stage = Stage(a.record.framework) if a.record.framework in OUTSIDE else Stage.UPDATE
        return Difference(rank=rank, step=a.record.steps, stage=stage)
    return None


def _site(stage: Stage, ours: str, theirs: str) -> str | None:
    return unlike_names(ours.split(_JOINT), theirs.split(_JOINT)) if stage in NAMED else None
