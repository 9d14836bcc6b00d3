"""What a suggested command is for."""

from detaudit.model import NextStep, Purpose

_COMMENTS = {
    Purpose.READ_STDERR: "full stderr of run {run}",
    Purpose.USE_TRAINING_PYTHON: "use your training's Python",
    Purpose.COMPARE_ARTIFACT: "or compare a file the script writes",
    Purpose.ISOLATE: "give each run its own copy of the folder, so that all start from the same state",
    Purpose.FIND_RANK: "ranks combine their gradients: record those of each, to find the rank that differs first",
    Purpose.TRY_RECIPES: "is seeding enough, or does it take recipe all?",
    Purpose.TRY_RECIPE: "is this recipe enough?",
    Purpose.BISECT: "find a minimal set of flags that fixes it",
    Purpose.TRACE: "find the line where the runs diverge",
    Purpose.FIND_VARIATIONS: "find the variations that change the result",
    Purpose.VARY: "it reads listings, hashes, addresses or the clock: does the result depend on them?",
    Purpose.USE_IN_CI: "use in CI: exits 0 as long as it stays deterministic",
    Purpose.PRINT_AGAIN: "print this report again",
    Purpose.RESUME: "resume this bisection",
    Purpose.AUDIT_WITH_RECIPE: "audit again with the recipe found",
    Purpose.AUDIT_WITH_FLAGS: "audit again with these flags",
    Purpose.CHECK_FLAG: "check that this flag fixes it",
    Purpose.FIX_CONTROL: "find the flags that fix it while nothing varies",
    Purpose.COMPARE_STEPS: "compare it with the baseline step by step",
    Purpose.ACCEPT_BASELINE: "accept the new result as the baseline",
    Purpose.CREATE_BASELINE: "create the baseline, then commit it",
    Purpose.PRINT_ALL_LOSSES: "print the losses at every step, and all weights that differ",
}


def comment(step: NextStep) -> str:
    """Return the comment above the command."""
    about = f"{step.audit}: " if step.audit else ""
    return about + _COMMENTS[step.purpose].format(run=step.run)
