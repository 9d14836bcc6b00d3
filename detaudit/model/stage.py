"""Stages, causes and verdicts, and what a first difference points to."""

from typing import NamedTuple

import msgspec

from detaudit import wire
from detaudit.compat import StrEnum
from detaudit.model.fact import both, either

# The enums of an audit: how a run ended, what a group shows, where a step differs, and why.


class Status(StrEnum):
    """How one run ended. One that is ``ENDED`` did the last wanted step (--until), and counts as whole up to there."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    NOT_RECORDED = "not-recorded"
    STOPPED = "stopped"
    ENDED = "ended"


STATUSES = {
    Status.OK: "finished",
    Status.FAILED: "failed",
    Status.TIMEOUT: "timed out",
    Status.NOT_RECORDED: "not recorded",
    Status.STOPPED: "stopped",
    Status.ENDED: "ended",
}
"""How a run ended, in words."""


class Verdict(StrEnum):
    """The result of a group of runs, or of a whole audit.

    ``MACHINE_DEPENDENT``: each machine repeats its own result, and machines have different ones.
    """

    DETERMINISTIC = "deterministic"
    NONDETERMINISTIC = "nondeterministic"
    MACHINE_DEPENDENT = "machine-dependent"
    INCONCLUSIVE = "inconclusive"


class ArchiveFlaw(StrEnum):
    """Why the archive of a run does not count; ``NO_ARCHIVE``: it is something else."""

    CUT = "cut"
    CHANGED = "changed"
    OTHER_VERSION = "other-version"
    NO_ARCHIVE = "no-archive"
    UNREADABLE = "unreadable"


class Records(StrEnum):
    """What runs on other machines are judged by: event logs, or trees, with which only some event logs are read."""

    LOGS = "logs"
    TREES = "trees"


class Across(StrEnum):
    """What it means for the exit status that machines have different results."""

    FAIL = "fail"
    WARN = "warn"


class Cause(StrEnum):
    """The class of a cause."""

    SEED = "seed"
    DATA = "data"
    KERNEL = "kernel"
    MEMORY = "memory"
    THREADS = "threads"
    HASH = "hash"
    ORDER = "order"
    ADDRESS = "address"
    HYPERPARAMETER = "hyperparameter"


class Stage(StrEnum):
    """The stages of a step in their order, then what is compared without a hook: what a run prints, writes, returns.

    ``STDOUT`` are the losses that --loss-pattern finds, ``ARTIFACT`` the files that --artifact names, ``SAVED`` all
    other files, ``PRINTED`` the lines on stdout and stderr, ``EXIT`` the exit status. ``STEPS`` means that one run has
    no such step.
    """

    INIT = "init"
    RNG = "rng"
    BATCH = "batch"
    FORWARD = "forward"
    BACKWARD = "backward"
    REDUCE = "reduce"
    HYPERPARAMETERS = "hyperparameters"
    UPDATE = "update"
    STATE = "state"
    OUTPUT = "output"
    STDOUT = "stdout"
    ARTIFACT = "artifact"
    SAVED = "saved"
    PRINTED = "printed"
    EXIT = "exit"
    RETURNED = "returned"
    STEPS = "steps"

    @property
    def position(self) -> int:
        """Its place in this order; ``STEPS`` comes last."""
        return list(Stage).index(self)

    def where(self, step: int, site: str | None = None, *, call: bool = False, at_end: bool = False) -> str:
        """Return ``at step 1 (batch)``, or in which file or returned value; ``call``: steps are calls of models."""
        if self in (Stage.ARTIFACT, Stage.SAVED, Stage.PRINTED):
            return f"in {site or ('printed text' if self is Stage.PRINTED else 'a file')}"
        if self is Stage.EXIT:
            return f"in the {site or 'exit status'}"
        if self is Stage.RETURNED:
            return f"in the returned value{f' {site}' if site else ''}"
        if self is Stage.OUTPUT and at_end:
            return f"after step {step:,} ({self})"
        at = f"at {'call' if call else 'step'} {step:,}"
        if self is Stage.STEPS:
            return at
        named = f"{self}: {site}" if site else self
        return f"{at if step else 'before the first step'} ({named})"


OUTPUTS = (Stage.SAVED, Stage.PRINTED, Stage.EXIT)
"""What left a run without being asked for; see model/outputs.py."""

UNHOOKED = (Stage.STDOUT, Stage.ARTIFACT, *OUTPUTS, Stage.RETURNED)
"""What is compared without a hook. Printed losses have steps of their own; the others have none."""

FITTED = tuple(
    name + calls for name, framework in wire.FRAMEWORKS.items() if framework.fits for calls in ("", wire.INFERENCE)
)
"""The frameworks whose trainings are fits of estimators, and whose calls are those of one that was fitted."""

NAMED = (Stage.ARTIFACT, *OUTPUTS, Stage.RETURNED)
"""The stages without steps, whose differences have the name of a file, a stream, or a part of a value."""


def is_inference(framework: str) -> bool:
    """Whether a part of a run has this name of a framework because it called models and trained nothing."""
    return framework.endswith(wire.INFERENCE)


# What a first difference points to.


class LikelyCause(StrEnum):
    """What may lie behind a first difference."""

    SEEDS = "seeds"
    INITIALIZATION_ORDER = "initialization-order"
    SEEDING = "seeding"
    DATA = "data"
    LOSS_ARGUMENTS = "loss-arguments"
    DATA_PIPELINE = "data-pipeline"
    FORWARD_KERNEL = "forward-kernel"
    UNINITIALIZED_MEMORY = "uninitialized-memory"
    BACKWARD_KERNEL = "backward-kernel"
    COLLECTIVE = "collective"
    OPTIMIZER = "optimizer"
    HYPERPARAMETERS = "hyperparameters"
    RACE = "race"
    RANDOM_STATE = "random-state"
    THREADS = "threads"
    CONTROL_FLOW = "control-flow"
    NOT_RECORDED = "not-recorded"
    OUTSIDE_THE_WEIGHTS = "outside-the-weights"
    BESIDE_THE_TRAINING = "beside-the-training"
    AFTER_THE_LAST_STEP = "after-the-last-step"
    CODE = "code"
    ENVIRONMENT = "environment"
    LEFTOVERS = "leftovers"


class StageInfo(NamedTuple):
    """What a stage is, in words and in what a first difference at it points to.

    ``differs`` is a sentence, ``event`` what happens at it in a step, ``subject`` what of a recording differs at it,
    and ``part`` what it is if it is no stage of a step. ``likely`` is what lies behind a stage that is the first to
    differ, if all stages before it were recorded, ``likely_of_fit`` the same for a fit, which has few stages.
    ``hidden_by`` is the stage right before it, and what that leaves open if it was not recorded.
    """

    differs: str
    event: str
    likely: tuple[LikelyCause, ...]
    subject: str = ""
    part: str = ""
    likely_of_fit: tuple[LikelyCause, ...] = ()
    hidden_by: tuple[Stage, LikelyCause] | None = None


STAGES = {
    Stage.INIT: StageInfo(
        differs="the initial weights differ",
        event="the initial weights",
        likely=(LikelyCause.SEEDS, LikelyCause.INITIALIZATION_ORDER),
    ),
    Stage.RNG: StageInfo(
        differs="a random generator is in a different state",
        event="the random state",
        likely=(LikelyCause.SEEDING,),
        subject="the random generators",
    ),
    Stage.BATCH: StageInfo(
        differs="the model's inputs differ",
        event="the model's inputs",
        likely=(LikelyCause.DATA_PIPELINE,),
        subject="the model's inputs",
        likely_of_fit=(LikelyCause.DATA,),
    ),
    Stage.FORWARD: StageInfo(
        differs="the loss differs",
        event="the loss",
        likely=(LikelyCause.LOSS_ARGUMENTS, LikelyCause.FORWARD_KERNEL, LikelyCause.UNINITIALIZED_MEMORY),
        subject="the loss",
        hidden_by=(Stage.BATCH, LikelyCause.DATA),
    ),
    Stage.BACKWARD: StageInfo(
        differs="the gradients differ",
        event="the gradients",
        likely=(LikelyCause.BACKWARD_KERNEL,),
        subject="the gradients",
    ),
    Stage.REDUCE: StageInfo(
        differs="the gradients that the optimizer gets differ",
        event="the gradients that the optimizer gets",
        likely=(LikelyCause.COLLECTIVE,),
        subject="the gradients that the optimizer gets",
        hidden_by=(Stage.BACKWARD, LikelyCause.BACKWARD_KERNEL),
    ),
    Stage.HYPERPARAMETERS: StageInfo(
        differs="a hyperparameter of the optimizer differs",
        event="the hyperparameters of the optimizer",
        likely=(LikelyCause.HYPERPARAMETERS,),
        subject="the hyperparameters",
    ),
    Stage.UPDATE: StageInfo(
        differs="the updated weights differ",
        event="the updated weights",
        likely=(LikelyCause.OPTIMIZER, LikelyCause.RACE),
        subject="the weights",
        likely_of_fit=(LikelyCause.RANDOM_STATE, LikelyCause.THREADS),
        hidden_by=(Stage.BACKWARD, LikelyCause.BACKWARD_KERNEL),
    ),
    Stage.STATE: StageInfo(
        differs="the buffers of the model differ",
        event="the buffers",
        likely=(LikelyCause.DATA, LikelyCause.FORWARD_KERNEL),
        subject="the buffers",
    ),
    Stage.OUTPUT: StageInfo(
        differs="the output of a model differs",
        event="the outputs",
        likely=(LikelyCause.FORWARD_KERNEL, LikelyCause.UNINITIALIZED_MEMORY),
        subject="the outputs of a model",
        hidden_by=(Stage.BATCH, LikelyCause.DATA),
    ),
    Stage.STDOUT: StageInfo(
        differs="a printed loss differs",
        event="the printed losses",
        likely=(LikelyCause.NOT_RECORDED,),
        subject="the printed losses",
        part="printed losses (--loss-pattern)",
    ),
    Stage.ARTIFACT: StageInfo(
        differs="a file the script wrote differs",
        event="the files that the script wrote",
        likely=(LikelyCause.NOT_RECORDED,),
        part="files (--artifact)",
    ),
    Stage.SAVED: StageInfo(
        differs="a file the script wrote differs",
        event="the files that the script wrote",
        likely=(LikelyCause.NOT_RECORDED,),
        part="saved files",
    ),
    Stage.PRINTED: StageInfo(
        differs="what the script printed differs",
        event="what the script printed",
        likely=(LikelyCause.NOT_RECORDED,),
        part="printed text",
    ),
    Stage.EXIT: StageInfo(
        differs="the exit status differs",
        event="the exit status",
        likely=(LikelyCause.NOT_RECORDED,),
        part="the exit status",
    ),
    Stage.RETURNED: StageInfo(
        differs="the value returned by the test differs",
        event="the returned value",
        likely=(LikelyCause.NOT_RECORDED,),
        part="returned values",
    ),
    Stage.STEPS: StageInfo(
        differs="only one run has this step",
        event="the number of steps",
        likely=(LikelyCause.CONTROL_FLOW,),
    ),
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
    LikelyCause.RANDOM_STATE: "a random_state that is not set or differs",
    LikelyCause.THREADS: "thread timing",
    LikelyCause.CONTROL_FLOW: "control flow that depends on time or data",
    LikelyCause.CODE: "changed code, hyperparameters or data",
    LikelyCause.ENVIRONMENT: "what changed in the environment",
    LikelyCause.LEFTOVERS: "the files that an earlier run left",
    LikelyCause.BESIDE_THE_TRAINING: "how the script computes, chooses or orders what it writes and prints",
    LikelyCause.OUTSIDE_THE_WEIGHTS: "something besides the weights, such as the time",
}
"""The words for likely causes; the other two are said in sentences of their own."""


def _although(matching: tuple[Stage, ...]) -> str:
    if not matching:
        return ""
    return f" although {both(matching)} match{'es' if len(matching) == 1 else ''}"


def _likely(likely: tuple[LikelyCause, ...]) -> str:
    if LikelyCause.NOT_RECORDED in likely:
        return "; its cause was not recorded"
    return f". Likely cause: {either(CAUSES[cause] for cause in likely)}" if likely else ""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What a first difference points to, no surer than what was recorded allows.

    ``matching`` are the stages of the same step that match, ``likely`` what may be behind it. ``gap`` are two steps
    between which nothing was recorded on both sides, so that the difference may start there.
    """

    matching: tuple[Stage, ...] = ()
    likely: tuple[LikelyCause, ...] = ()
    gap: tuple[int, int] | None = None

    def text(self, stage: Stage) -> str:
        """Return what differs, what matches nevertheless, and the likely cause."""
        if self.gap is not None:
            last, first = self.gap
            between = f"between {last:,} and {first:,}" if last else f"before step {first:,}"
            return f"no step {between} is recorded on both sides; the difference may start there"
        if LikelyCause.AFTER_THE_LAST_STEP in self.likely and stage is Stage.OUTPUT:
            return "every step, the weights and the buffers match; what models returned after the last update differs"
        if LikelyCause.AFTER_THE_LAST_STEP in self.likely:
            if stage is Stage.STATE:
                return "every recorded step matches; what a model holds at the end differs"
            return "every recorded step matches; the weights or the loss changed after the last one"
        differs = "what was learned differs" if LikelyCause.RANDOM_STATE in self.likely else STAGES[stage].differs
        return f"{differs}{_although(self.matching)}{_likely(self.likely)}"
