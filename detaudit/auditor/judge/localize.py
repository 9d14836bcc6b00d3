"""Where the first difference enters, and what kind of cause that points to, in words."""

from collections.abc import Sequence

from detaudit.model import UNHOOKED, Divergence, Run, Stage

_WHAT = {
    Stage.INIT: ("the weights differ before the first step", "seeds, or the order of initialisation"),
    Stage.RNG: ("a random generator is in another state", "it was seeded or used differently"),
    Stage.BATCH: ("the model's inputs differ", "the data pipeline"),
    Stage.FORWARD: ("the loss differs", "a forward kernel, or memory that was never set"),
    Stage.BACKWARD: ("the gradients differ", "a backward kernel"),
    Stage.UPDATE: ("the updated weights differ", "the optimizer, or a race on shared memory"),
    Stage.STDOUT: ("a printed loss differs", "what led to it was not seen"),
    Stage.ARTIFACT: ("a file that the script wrote differs", "what led to it was not seen"),
    Stage.RETURNED: ("the value that the test returned differs", "what led to it was not seen"),
    Stage.STEPS: ("one run has no such step", "control flow depends on time or data"),
}
"""What is seen where a stage is the first to differ, and the cause if all stages before it were recorded."""

_UNSEEN = {Stage.BATCH: "the data", Stage.BACKWARD: "a backward kernel"}
"""What a stage that was not recorded leaves open for those after it."""


def cause(stage: Stage, recorded: Sequence[Stage]) -> str:
    """Return what a first difference at ``stage`` points to, no surer than what was recorded allows."""
    seen, likely = _WHAT[stage]
    if stage in UNHOOKED and Stage.UPDATE in recorded:
        likely = "it depends on something else, such as the time"
    before = [s for s in recorded if s.place < stage.place and s is not Stage.INIT]
    agree = (
        f" while {' and '.join(before)} agree{'s' * (len(before) == 1)}" if before and stage is not Stage.STEPS else ""
    )
    direct = {Stage.FORWARD: Stage.BATCH, Stage.UPDATE: Stage.BACKWARD}.get(stage)
    open_ = f"{_UNSEEN[direct]}, " if direct and direct not in recorded else ""
    return f"{seen}{agree}: {open_}{likely}"


def divergence(runs: Sequence[Run], recorded: Sequence[Stage] = ()) -> Divergence | None:
    """Return the earliest difference of any run from the group's first finished run."""
    base = next((run for run in runs if run.ranks), None)
    found = [(run, run.differs) for run in runs if run.differs is not None]
    if base is None or not found:
        return None
    run, first = min(found, key=lambda pair: pair[1].order)
    return Divergence(
        runs=(base.id, run.id),
        rank=first.rank,
        step=first.step,
        stage=first.stage,
        site=first.site,
        cause=cause(first.stage, recorded),
    )
