"""What differs first, and what may be behind it."""

from detaudit.model import Explanation, LikelyCause, Stage
from detaudit.report.messages.wording import both, either

_DIFFERS = {
    Stage.INIT: "the initial weights differ",
    Stage.RNG: "a random generator is in a different state",
    Stage.BATCH: "the model's inputs differ",
    Stage.FORWARD: "the loss differs",
    Stage.BACKWARD: "the gradients differ",
    Stage.REDUCE: "the gradients that the optimizer gets differ",
    Stage.HYPERPARAMETERS: "a hyperparameter of the optimizer differs",
    Stage.UPDATE: "the updated weights differ",
    Stage.STATE: "the buffers of the model differ",
    Stage.OUTPUT: "the output of a model differs",
    Stage.STDOUT: "a printed loss differs",
    Stage.ARTIFACT: "a file the script wrote differs",
    Stage.SAVED: "a file the script wrote differs",
    Stage.PRINTED: "what the script printed differs",
    Stage.EXIT: "the exit status differs",
    Stage.RETURNED: "the value returned by the test differs",
    Stage.STEPS: "only one run has this step",
}

CAUSES = {
    LikelyCause.SEEDS: "seeds",
    LikelyCause.INITIALIZATION_ORDER: "the order of initialization",
    LikelyCause.SEEDING: "different seeding or use",
    LikelyCause.DATA: "the data",
    LikelyCause.DATA_PIPELINE: "the data pipeline",
    LikelyCause.LOSS_ARGUMENTS: "the targets or other numbers in the loss",
    LikelyCause.FORWARD_KERNEL: "a nondeterministic forward kernel",
    LikelyCause.UNINITIALIZED_MEMORY: "uninitialized memory",
    LikelyCause.BACKWARD_KERNEL: "a nondeterministic backward kernel",
    LikelyCause.COLLECTIVE: "how gradients are combined between ranks, or changed before the optimizer gets them",
    LikelyCause.OPTIMIZER: "the optimizer or its hyperparameters",
    LikelyCause.HYPERPARAMETERS: "how the script sets it",
    LikelyCause.RACE: "a race on shared memory",
    LikelyCause.RANDOM_STATE: "a random_state that is not set",
    LikelyCause.THREADS: "thread timing",
    LikelyCause.CONTROL_FLOW: "control flow that depends on time or data",
    LikelyCause.CODE: "changed code, hyperparameters or data",
    LikelyCause.ENVIRONMENT: "what changed in the environment",
    LikelyCause.BESIDE_THE_TRAINING: "how the script computes, chooses or orders what it writes and prints",
    LikelyCause.OUTSIDE_THE_WEIGHTS: "something besides the weights, such as the time",
}
"""The words for likely causes; the other two are said in sentences of their own."""


def sentence(stage: Stage, found: Explanation) -> str:
    """Return what differs, what matches nevertheless, and the likely cause."""
    if found.gap is not None:
        last, first = found.gap
        between = f"between {last:,} and {first:,}" if last else f"before step {first:,}"
        return f"no step {between} is recorded on both sides; the difference may start there"
    if LikelyCause.AFTER_THE_LAST_STEP in found.likely and stage is Stage.OUTPUT:
        return "every step, the weights and the buffers match; what models returned after the last update differs"
    if LikelyCause.AFTER_THE_LAST_STEP in found.likely:
        changed = "the state of a model" if stage is Stage.STATE else "the weights or the loss"
        return f"every recorded step matches; {changed} changed after the last one"
    differs = "what was learned differs" if LikelyCause.RANDOM_STATE in found.likely else _DIFFERS[stage]
    return f"{differs}{_although(found.matching)}{_likely(found.likely)}"


def _although(matching: tuple[Stage, ...]) -> str:
    if not matching:
        return ""
    return f" although {both(matching)} match{'es' if len(matching) == 1 else ''}"


def _likely(likely: tuple[LikelyCause, ...]) -> str:
    if LikelyCause.NOT_RECORDED in likely:
        return "; its cause was not recorded"
    return f". Likely cause: {either(CAUSES[cause] for cause in likely)}" if likely else ""
