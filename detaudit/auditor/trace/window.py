"""Choose the steps to record: those around a first difference, and better ones if two runs give no answer."""

from detaudit.auditor.trace import op_diff
from detaudit.auditor.trace.instrumented import EVERY_STEP, RunPair, Window
from detaudit.model import ALL_STEPS, UNHOOKED, Difference, How, Stage

ATTEMPTS = 5
"""How often another window is tried: a race may show at a different step in each pair of runs."""

WIDE = 8
"""Steps before and after the window that are recorded too if two runs match in it."""


def around(found: Difference, size: int) -> Window:
    """Return the ``size`` steps from a first difference on, including what runs before the first step.

    What only differs at the end may come from all that follows the last step, what no step shows from anything.
    """
    if found.stage in UNHOOKED:
        return EVERY_STEP
    first = 0 if found.stage is Stage.INIT or found.step <= 1 else found.step
    return Window(first, ALL_STEPS if found.at_end else max(1, found.step) + size - 1)


def better(
    window: Window, pair: RunPair | None, found: op_diff.OpFinding | None, attempt: int, explained: bool
) -> Window | None:
    """Return another window if two runs gave no answer in this one; None if they did.

    ``pair`` is None if they match, ``attempt`` counts from 0; ``explained`` says that lines are known that may
    introduce a difference of which no operation is found.
    """
    if pair is None:  # a rare race shows at a different step, if at all
        return Window(max(0, window.first - WIDE), window.last + WIDE)
    if pair.differs.step < window.first:
        size = window.last - window.first + 1
        return around(pair.differs, size) if attempt == 0 else Window(0, window.last)
    if found is not None and _from_before(found, window):
        return Window(0, window.last)
    if found is None and attempt + 1 < ATTEMPTS and not explained and window.last < ALL_STEPS:
        return Window(window.first, window.last + 4 * (attempt + 1))  # the steps of threads are hard to count
    return None


def _from_before(found: op_diff.OpFinding, window: Window) -> bool:
    """Whether the difference is in a tensor that was made before the window opened."""
    entered = found.op.op.startswith(op_diff.ENTERS)
    return window.first > 2 and found.how is How.INPUT and not entered and not found.op.key
