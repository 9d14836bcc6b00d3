"""State that runs left for later ones, and what a run without it showed."""

from detaudit.compat import assert_never
from detaudit.model.files import FreshStart, LeftState, StateRead
from detaudit.report.messages.wording import shortened

_SHOWN = 3


def checked(found: LeftState) -> str:
    """Return what a run without the state showed."""
    if found.outcome is FreshStart.SAME:
        return f"{_read(found)}. Run {found.run} started without it and matches, so it was a cache."
    return (
        f"{_read(found)}. Run {found.run} started without it and differs: the runs before matched because they shared "
        "it, and each fresh machine may have another result."
    )


def unsettled(found: LeftState) -> str:
    """Return why nobody can say whether the state matters, and what settles it."""
    match found.outcome:
        case FreshStart.EXISTED:
            why = f"existed before the audit ({found.detail}), so no run can be started without it"
        case FreshStart.IN_USE:
            why = f"cannot be put aside for a run without it: {found.detail}"
        case FreshStart.FAILED:
            why = f"was needed by run {found.run}, which started without it and failed"
        case FreshStart.SAME | FreshStart.DIFFERENT:
            why = f"does not decide: run {found.run} started without it"
        case _:
            assert_never(found.outcome)
    return f"{_read(found)}; that state {why}. Use --isolate, or let the script write to another folder in each run"


def _read(found: LeftState) -> str:
    shown = [_one(read) for read in found.reads[:_SHOWN]]
    return f"runs did not start from the same state: {shortened(shown, len(found.reads) - len(shown))}"


def _one(read: StateRead) -> str:
    by = f"run {read.left_by}" + (f" of {read.recipe}" if read.recipe else "")
    at = f" at {read.file}:{read.line}" if read.file else ""
    return f"run {read.read_by} read {read.path}{at}, which {by} left"
