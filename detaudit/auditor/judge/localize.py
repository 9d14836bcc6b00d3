"""Where two runs first differ, and what that points to."""

from collections.abc import Sequence

from msgspec.structs import replace

from detaudit.model import OUTPUTS, UNHOOKED, Difference, Divergence, Explanation, LikelyCause, Run, Stage

_LIKELY = {
    Stage.INIT: (LikelyCause.SEEDS, LikelyCause.INITIALIZATION_ORDER),
    Stage.RNG: (LikelyCause.SEEDING,),
    Stage.BATCH: (LikelyCause.DATA_PIPELINE,),
    Stage.FORWARD: (LikelyCause.LOSS_ARGUMENTS, LikelyCause.FORWARD_KERNEL, LikelyCause.UNINITIALIZED_MEMORY),
    Stage.BACKWARD: (LikelyCause.BACKWARD_KERNEL,),
    Stage.REDUCE: (LikelyCause.COLLECTIVE,),
    Stage.HYPERPARAMETERS: (LikelyCause.HYPERPARAMETERS,),
    Stage.UPDATE: (LikelyCause.OPTIMIZER, LikelyCause.RACE),
    Stage.STATE: (LikelyCause.DATA, LikelyCause.FORWARD_KERNEL),
    Stage.OUTPUT: (LikelyCause.FORWARD_KERNEL, LikelyCause.UNINITIALIZED_MEMORY),
    Stage.STDOUT: (LikelyCause.NOT_RECORDED,),
    Stage.ARTIFACT: (LikelyCause.NOT_RECORDED,),
    Stage.SAVED: (LikelyCause.NOT_RECORDED,),
    Stage.PRINTED: (LikelyCause.NOT_RECORDED,),
    Stage.EXIT: (LikelyCause.NOT_RECORDED,),
    Stage.RETURNED: (LikelyCause.NOT_RECORDED,),
    Stage.STEPS: (LikelyCause.CONTROL_FLOW,),
}
"""What lies behind a stage that is the first to differ, if all stages before it were recorded."""

_OF_FIT = {
    Stage.BATCH: (LikelyCause.DATA,),
    Stage.UPDATE: (LikelyCause.RANDOM_STATE, LikelyCause.THREADS),
}
"""The same for a fit, which has no other stages."""

_UNRECORDED = {
    Stage.FORWARD: (Stage.BATCH, LikelyCause.DATA),
    Stage.OUTPUT: (Stage.BATCH, LikelyCause.DATA),
    Stage.REDUCE: (Stage.BACKWARD, LikelyCause.BACKWARD_KERNEL),
    Stage.UPDATE: (Stage.BACKWARD, LikelyCause.BACKWARD_KERNEL),
}
"""The stage right before one, and what it leaves open if it was not recorded."""


def of_difference(found: Difference, recorded: Sequence[Stage]) -> Explanation:
    """Return what a first difference points to, and claim no more than the recorded stages allow."""
    if found.at_end and found.stage not in UNHOOKED:
        return Explanation(likely=(LikelyCause.AFTER_THE_LAST_STEP,))
    if found.of_fit:
        matching = tuple(one for one in recorded if one in (Stage.RNG, Stage.BATCH) and one.place < found.stage.place)
        return Explanation(matching=matching, likely=_OF_FIT[found.stage])
    return explanation(found.stage, recorded)


def explanation(stage: Stage, recorded: Sequence[Stage]) -> Explanation:
    """Return what a first difference at ``stage`` points to, and claim no more than the recorded stages allow."""
    likely = _LIKELY[stage]
    if stage in UNHOOKED and Stage.UPDATE in recorded:
        likely = (LikelyCause.BESIDE_THE_TRAINING if stage in OUTPUTS else LikelyCause.OUTSIDE_THE_WEIGHTS,)
    matching = tuple(one for one in recorded if one.place < stage.place and one is not Stage.INIT)
    direct, leaves_open = _UNRECORDED.get(stage, (None, None))
    if leaves_open is LikelyCause.BACKWARD_KERNEL and not {Stage.BATCH, Stage.FORWARD} & {*recorded}:
        leaves_open = LikelyCause.DATA
    if leaves_open is not None and direct not in recorded:
        # The data include what the loss is given.
        likely = (leaves_open, *(cause for cause in likely if cause is not LikelyCause.LOSS_ARGUMENTS))
    return Explanation(matching=() if stage is Stage.STEPS else matching, likely=likely)


def in_changed_environment(found: Explanation) -> Explanation:
    """Return what a first difference points to if the environment changed, which seeds do not explain."""
    others = tuple(cause for cause in found.likely if cause is not LikelyCause.SEEDS)
    return replace(found, likely=(LikelyCause.ENVIRONMENT, *others)) if others != found.likely else found


def divergence(runs: Sequence[Run], recorded: Sequence[Stage] = ()) -> Divergence | None:
    """Return the earliest difference of any run from the one that it was compared with."""
    base = min(runs, key=lambda run: (not run.ranks, run.first_difference is not None), default=None)
    found = [(run, run.first_difference) for run in runs if run.first_difference is not None]
    if base is None or not found:
        return None
    run, first = min(found, key=lambda pair: pair[1].order)
    reference = run.reference or base.id
    ended = all(one.finished for one in runs if one.id in (reference, run.id))
    trained = ended or first.stage not in OUTPUTS  # else one failed or did not train, and no training was compared
    return Divergence(
        runs=(reference, run.id),
        rank=first.rank,
        step=first.step,
        stage=first.stage,
        site=first.site,
        at_end=first.at_end,
        call=first.call,
        also=first.also,
        output=first.output,
        explanation=of_difference(first, recorded if trained else ()),
    )
