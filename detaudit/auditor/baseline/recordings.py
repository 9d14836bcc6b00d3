"""Recordings: made of what a run was compared by, and thinned out for a baseline."""

from collections.abc import Mapping, Reversible, Sequence
from typing import TypeVar, cast

from msgspec.structs import replace

from detaudit.auditor.judge import saved_files
from detaudit.model import AppliedRecipe, Artifact, Recording, Run, RunRecord, Stage, Training

KEPT_STEPS = 64
"""How many steps of each stage a baseline keeps, beside the powers of two."""

T = TypeVar("T")


def recording_of(
    command: Sequence[str], recipe: AppliedRecipe, environment: Mapping[str, str], run: Run, record: RunRecord
) -> Recording:
    """Return what ``run`` recorded; ``record`` is what it was compared by."""
    kept = replace(record, unhooked=tuple(_by_file(part, run) for part in record.unhooked))
    return Recording(command=tuple(command), recipe=recipe, environment=dict(environment), run=kept)


def _by_file(part: Training, run: Run) -> Training:
    match part.framework:
        case Stage.ARTIFACT:
            return replace(part, digests=file_digests(run.artifacts))
        case Stage.SAVED:
            return saved_files.by_file(part)
        case _:
            return part


def file_digests(artifacts: Sequence[Artifact]) -> dict[Stage, dict[int, tuple[str, ...]]]:
    """Return one digest for each file: an audit keeps no more of them, and a baseline stays small."""
    return {Stage.ARTIFACT: {0: tuple(f"{file.digest} {file.path}" for file in artifacts)}}


def ended(recording: Recording, step: int) -> Recording:
    """Return a recording as of a run that was ended after a step: without what followed, and without its files."""
    trainings = tuple(part if part.steps <= step else part.through(step) for part in recording.run.trainings)
    return replace(recording, run=RunRecord(trainings=trainings))


def thinned(recording: Recording) -> Recording:
    """Return a recording with some steps only: the first two, powers of two, the last, and about KEPT_STEPS between."""
    return replace(recording, run=recording.run.each(_thin))


def _thin(part: Training) -> Training:
    digests = {stage: _some(steps) for stage, steps in part.digests.items()}
    return replace(part, digests=digests, losses=_some(part.losses))


def _some(steps: Mapping[int, T]) -> dict[int, T]:
    """Return some steps. Those that an event log has are looked up, the last one of it is known."""
    if isinstance(steps, dict):
        kept = _kept(max([0, *steps]))
        return {step: value for step, value in steps.items() if step in kept or step < 0}
    kept = _kept(next(reversed(cast("Reversible[int]", steps)), 0))
    return {step: steps[step] for step in sorted(kept) if step in steps}


def _kept(last: int) -> set[int]:
    stride = last // KEPT_STEPS + 1
    return {0, last, *(2**power for power in range(last.bit_length())), *range(0, last + 1, stride)}


def asked(recording: Recording) -> dict[str, str]:
    """Return the command, seed and flags of a recording, as text."""
    flags = ", ".join(sorted(recording.recipe.flags))
    return {"command": " ".join(recording.command), "seed": str(recording.recipe.seed), "flags": flags}
