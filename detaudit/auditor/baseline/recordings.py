"""Recordings: made of what a run was compared by, and thinned out for a baseline."""

from collections.abc import Mapping, Reversible, Sequence
from typing import cast

from msgspec.structs import replace

from detaudit.model import AppliedRecipe, Artifact, Recording, Run, RunRecord, Stage, Training
from detaudit.outputs import compare

KEPT_STEPS = 64
"""How many steps of each stage the baseline of a long training keeps, beside the powers of two."""

_STEPS_PER_KEPT = 32
"""A shorter one keeps a step of so many: its powers of two are close to each other."""


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
    """Return a recording with some steps only: the first two, powers of two, the last, and up to KEPT_STEPS between.

    Of generators it has the first and the last step.

    Of what left the run it has one digest for each file and stream.
    """
    run, left = recording.run.each(_thin), recording.run.outputs
    return replace(recording, run=replace(run, outputs=compare.thinned(left) if left is not None else None))


def _thin(part: Training) -> Training:
    wanted = {stage: _kept(steps) for stage, steps in part.digests.items()}
    if drawn := wanted.get(Stage.RNG):  # what differs later shows in the other stages
        wanted[Stage.RNG] = [step for step in drawn if step <= 1 or step == drawn[-1]]
    digests: dict[Stage, dict[int, tuple[str, ...]]] = {stage: {} for stage in wanted}
    # Step by step, because an event log has the stages of a step together.
    for step in sorted({step for kept in wanted.values() for step in kept}):
        for stage, steps in part.digests.items():
            if step in wanted[stage] and step in steps:
                digests[stage][step] = steps[step]
    losses = {step: part.losses[step] for step in _kept(part.losses) if step in part.losses}
    return replace(part, digests=digests, losses=losses, weight_sets=())


def _kept(steps: Mapping[int, object]) -> list[int]:
    """Return the steps to keep, in the order in which they were recorded; of an event log, those that it may have."""
    held = isinstance(steps, dict)
    last = max([0, *steps]) if held else next(reversed(cast("Reversible[int]", steps)), 0)
    stride = max(last // KEPT_STEPS + 1, _STEPS_PER_KEPT)
    kept = {last, *(2**power for power in range(last.bit_length())), *range(0, last + 1, stride)}
    return [step for step in steps if step in kept or step < 0] if held else sorted(kept)


def asked(recording: Recording) -> dict[str, str]:
    """Return the command, seed and flags of a recording, as text."""
    flags = ", ".join(sorted(recording.recipe.flags))
    return {"command": " ".join(recording.command), "seed": str(recording.recipe.seed), "flags": flags}
