"""What to type next."""

import msgspec

from detaudit.compat import StrEnum


class Purpose(StrEnum):
    """What a next step is for."""

    READ_STDERR = "read-stderr"
    USE_TRAINING_PYTHON = "use-training-python"
    COMPARE_ARTIFACT = "compare-artifact"
    ISOLATE = "isolate"
    FIND_RANK = "find-rank"
    TRY_RECIPES = "try-recipes"
    TRY_RECIPE = "try-recipe"
    BISECT = "bisect"
    TRACE = "trace"
    FIND_VARIATIONS = "find-variations"
    USE_IN_CI = "use-in-ci"
    VARY = "vary"
    PRINT_AGAIN = "print-again"
    RESUME = "resume"
    AUDIT_WITH_RECIPE = "audit-with-recipe"
    AUDIT_WITH_FLAGS = "audit-with-flags"
    CHECK_FLAG = "check-flag"
    FIX_CONTROL = "fix-control"
    COMPARE_STEPS = "compare-steps"
    ACCEPT_BASELINE = "accept-baseline"
    CREATE_BASELINE = "create-baseline"
    PRINT_ALL_LOSSES = "print-all-losses"


class NextStep(msgspec.Struct, frozen=True, kw_only=True):
    """A command that follows from what was found, and what it is for: which ``run``, or which ``audit`` of a check."""

    command: str
    purpose: Purpose
    run: int | None = None
    audit: str = ""
