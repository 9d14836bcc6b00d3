"""What became of the flags of a recipe."""

from detaudit.model import FlagOutcome

OUTCOMES = {
    FlagOutcome.APPLIED: "applied",
    FlagOutcome.OVERRIDDEN: "overridden by the script",
    FlagOutcome.NOT_IMPORTED: "skipped (not imported)",
    FlagOutcome.UNAVAILABLE: "unavailable",
    FlagOutcome.FAILED: "failed",
}
