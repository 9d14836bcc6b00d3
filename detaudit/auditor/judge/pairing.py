"""Decides which parts of two runs are compared with each other, and which of what was recorded is a result."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from detaudit.model import UNHOOKED, FinalState, RunRecord, Stage, Training, blocks, digits

RESULTS = frozenset({Stage.INIT, Stage.FORWARD, Stage.UPDATE, Stage.STATE, Stage.OUTPUT, *UNHOOKED})
"""The stages that are results of a training. The others only explain: a script may draw a random name for its logs."""


def results(part: Training) -> frozenset[Stage]:
    """Return the stages that are results of this part. A model that is only called may hold weights that it ignores."""
    return RESULTS - {Stage.INIT} if part.is_inference else RESULTS


class Matched(NamedTuple):
    """Two parts that are compared with each other, and the rank of the first."""

    rank: int
    a: Training
    b: Training


def pairs(a: RunRecord, b: RunRecord) -> list[Matched]:
    """Return what is compared: trainings in their order, or by what was trained, printed losses and files by kind."""
    theirs = {part.framework: part for part in b.unhooked}
    shown = [(rank, part) for rank, part in enumerate(a.parts) if rank >= len(a.trainings) and part.framework in theirs]
    trained = _trained(a.trainings, b.trainings, ended=(a.through, b.through) != (None, None))
    return trained + [Matched(rank, part, theirs[part.framework]) for rank, part in shown]


def _trained(a: Sequence[Training], b: Sequence[Training], *, ended: bool) -> list[Matched]:
    """Match trainings. Of a run that was ``ended``, others may be missing between those of several frameworks."""
    if {part.attempt for part in a} != {part.attempt for part in b}:
        return []  # ranks that were started again begin anywhere
    placed = [part for part in b if not part.unplaced]
    matched: dict[int, Training] = {}
    for rank, part in enumerate(a):
        if placed and not part.unplaced:
            same = (one for one in placed if ended and one.framework == part.framework)
            matched[rank] = next(same, placed[0])
            placed = [one for one in placed if one is not matched[rank]]
    left = [(_likeness(part), part) for part in (*(part for part in b if part.unplaced), *placed)]
    ours = [_likeness(part) for part in a] if left else []
    for place in range(4):
        for rank in [rank for rank in range(len(ours)) if rank not in matched]:
            found = next((one for one in left if one[0][place] == ours[rank][place]), None)
            if found is not None:
                matched[rank] = found[1]
                left.remove(found)
    return [Matched(rank, a[rank], other) for rank, other in sorted(matched.items())]


def _likeness(part: Training) -> tuple[object, ...]:
    """Return what two trainings are matched by: all that they did, how they ended, how they began, or nothing else."""
    initial = blocks.fingerprint(part.digests.get(Stage.INIT, {}))
    return _key(part), end(part), (part.framework, initial), part.framework


def identity(run: RunRecord) -> str:
    """Return a text that is equal for two runs of one audit if and only if their results are."""
    placed = [_key(part) for part in run.parts if not part.unplaced]
    unplaced = sorted(_key(part) for part in run.parts if part.unplaced)
    return _digest((placed, unplaced))


def _key(part: Training) -> str:
    found = [(stage, blocks.fingerprint(part.digests[stage])) for stage in sorted(results(part) & part.digests.keys())]
    return _digest((end(part), also_at_end(part), found))


def _digest(value: object) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=16).hexdigest()


def end(part: Training) -> tuple[str, int, str, str | None]:
    """Return what must be equal at the end: of weights every bit, not their sum nor where they live."""
    final = part.final or FinalState()
    return part.framework, part.steps, digits(part.last_loss), final.digest


def also_at_end(part: Training) -> tuple[str | None, str | None]:
    """Return what must be equal too, but an older baseline may not have: the buffers, and the last outputs."""
    final = part.final or FinalState()
    return final.state_digest, final.outputs
