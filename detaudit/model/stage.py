"""Stages, causes and verdicts, and what a first difference points to."""

import msgspec

from detaudit import wire
from detaudit.compat import StrEnum

# The enums of an audit: how a run ended, what a group shows, where a step differs, and why.


class Status(StrEnum):
    """How one run ended. One that is ``ENDED`` did the last wanted step (--until), and counts as whole up to there."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    NOT_RECORDED = "not-recorded"
    STOPPED = "stopped"
    ENDED = "ended"


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
    def place(self) -> int:
        """Its place in this order; ``STEPS`` comes last."""
        return list(Stage).index(self)


OUTPUTS = (Stage.SAVED, Stage.PRINTED, Stage.EXIT)
"""What left a run without being asked for; see model/outputs.py."""

UNHOOKED = (Stage.STDOUT, Stage.ARTIFACT, *OUTPUTS, Stage.RETURNED)
"""What is compared without a hook. Printed losses have steps of their own; the others have none."""

FITTED = ("sklearn", "xgboost", "lightgbm", "catboost")
"""The frameworks whose trainings are fits of estimators."""

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


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What a first difference points to, no surer than what was recorded allows.

    ``matching`` are the stages of the same step that match, ``likely`` what may be behind it. ``gap`` are two steps
    between which nothing was recorded on both sides, so that the difference may start there.
    """

    matching: tuple[Stage, ...] = ()
    likely: tuple[LikelyCause, ...] = ()
    gap: tuple[int, int] | None = None
