"""Compares what two runs of the same flags recorded: whether they differ, and where first."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from detaudit.auditor.evidence.event_logs import Process, Stream
from detaudit.model import NAMED, OUTSIDE, Difference, Replicas, Stage

LADDER = tuple(stage for stage in Stage if stage not in (*OUTSIDE, Stage.STEPS))

Digests = Mapping[Stage, tuple[str, ...]]
"""The digests of one step."""

RESULT = frozenset({Stage.INIT, Stage.FORWARD, Stage.UPDATE, *OUTSIDE})
"""The stages that are results of a training. The others only explain: a script may draw a random run name."""


def streams_of(processes: Sequence[Process]) -> list[Stream]:
    """Return what was trained in a run, one stream a rank; the rank is the place in this list."""
    return [stream for process in processes for stream in process.trained]


def result_key(streams: Sequence[Stream]) -> str:
    """Return a text that is equal for two runs if they ended alike and came there alike, bit for bit."""
    key = hashlib.blake2b(digest_size=16)
    for stream in streams:
        final = stream.final
        key.update(repr((stream.framework, final and (final.steps, final.digest, final.loss, final.sum))).encode())
        for step, stages in sorted(stream.stages.items()):
            kept = sorted((stage, digests) for stage, digests in stages.items() if stage in RESULT)
            key.update(repr((step, kept)).encode() if kept else b"")
    return key.hexdigest()


def sparse(streams: Iterable[Stream]) -> bool:
    """Whether weights were too large to be digested at every step."""
    return any(stream.final is not None and stream.final.sparse for stream in streams)


def recorded_stages(streams: Iterable[Stream]) -> tuple[Stage, ...]:
    """Return the stages of which anything was recorded."""
    found = {stage for stream in streams for stages in stream.stages.values() for stage in stages}
    return tuple(stage for stage in (*LADDER, *OUTSIDE) if stage in found)


def first_difference(a: Sequence[Stream], b: Sequence[Stream]) -> Difference | None:
    """Return the earliest step and stage at which two runs with different results differ, None if none do."""
    if result_key(a) == result_key(b):
        return None
    found = [d for rank, pair in enumerate(zip(a, b, strict=False)) if (d := _first(rank, *pair))]
    if not found or len(a) != len(b):
        missing = Difference(rank=min(len(a), len(b)), step=0, stage=Stage.STEPS)
        found = found if len(a) == len(b) else [*found, missing]
    return min(found, key=lambda d: d.order, default=None)


def _first(rank: int, a: Stream, b: Stream) -> Difference | None:
    for step in sorted({*a.stages, *b.stages}):
        ours, theirs = a.stages.get(step), b.stages.get(step)
        if ours is None or theirs is None:
            beside = next((stage for stage in OUTSIDE if stage in (ours or theirs or {})), Stage.STEPS)
            return Difference(rank=rank, step=step, stage=beside)
        for stage in (*LADDER, *OUTSIDE):
            if ours.get(stage) != theirs.get(stage):
                return Difference(rank=rank, step=step, stage=stage, site=_site(stage, ours, theirs))
    if a.final != b.final:  # equal in every step, different at the end: changed after the last one
        return Difference(rank=rank, step=max(a.steps, b.steps), stage=Stage.UPDATE)
    return None


def _site(stage: Stage, ours: Digests, theirs: Digests) -> str | None:
    return unlike_names(ours.get(stage, ()), theirs.get(stage, ())) if stage in NAMED else None


def unlike_names(ours: Iterable[str], theirs: Iterable[str]) -> str:
    """Return which files and tensors in them, or parts of a value, differ: the first, and how many more."""
    first, *more = sorted({part.partition(" ")[2] for part in {*ours} ^ {*theirs}})
    return f"{first} and {len(more)} more" if more else first


def unlike_generators(a: Iterable[Process], b: Iterable[Process]) -> tuple[str, ...]:
    """Return the random generators that were in another state when a training began, in its first process that says."""
    ours, theirs = (next((p.generators for p in processes if p.generators), {}) for processes in (a, b))
    return tuple(sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)))


def replicas(run: int, processes: Iterable[Process]) -> Replicas | None:
    """Return whether the ranks that a launcher started hold equal weights, None where no two were seen."""
    ranks = [stream for process in processes if process.hello.rank is not None for stream in process.trained]
    weights = (Stage.INIT, Stage.UPDATE)
    if len(ranks) < 2 or not any(stage in stages for stages in ranks[0].stages.values() for stage in weights):
        return None
    found = [
        Difference(rank=rank, step=step, stage=stage)
        for rank, stream in enumerate(ranks)
        for step in {*ranks[0].stages, *stream.stages}
        for stage in weights
        if ranks[0].stages.get(step, {}).get(stage) != stream.stages.get(step, {}).get(stage)
    ]
    return Replicas(ranks=len(ranks), run=run, differs=min(found, key=lambda d: (d.step, d.stage.place), default=None))
