"""What a first difference points to."""

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.enums import Stage


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
