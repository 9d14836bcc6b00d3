"""Which steps to watch: those around a first difference, and better ones where two watched runs are no answer."""

from detaudit.auditor.trace import op_diff
from detaudit.auditor.trace.instrumented import Pair, Window
from detaudit.model import Stage

ATTEMPTS = 5
"""How often another window is tried: a race may show at another step in each pair of runs."""

WIDE = 8
"""Steps before and after the window that are watched as well where two runs agree in it."""


def around(step: int, stage: Stage, size: int) -> Window:
    """Return the ``size`` steps from a first difference on, with what comes before the first step."""
    first = 0 if stage is Stage.INIT or step <= 1 else step
    return Window(first, max(1, step) + size - 1)


def better(window: Window, pair: Pair | None, found: op_diff.Finding | None, attempt: int, told: bool) -> Window | None:
    """Return another window, where what two runs showed in this one is no answer; None where it is one.

    ``pair`` is None where they agreed, ``attempt`` counts from 0; ``told`` is whether lines are known that may bring a
    difference of which no operation is found.
    """
    if pair is None:  # a rare race shows at another step, if it does
        return Window(max(0, window.first - WIDE), window.last + WIDE)
    if pair.differs.step < window.first:
        size = window.last - window.first + 1
        return around(pair.differs.step, pair.differs.stage, size) if attempt == 0 else Window(0, window.last)
    if found is not None and _from_before(found, window):
        return Window(0, window.last)
    if found is None and attempt + 1 < ATTEMPTS and not told:
        return Window(window.first, window.last + 4 * (attempt + 1))  # the steps of threads are hard to count
    return None


def _from_before(found: op_diff.Finding, window: Window) -> bool:
    """Whether the difference was there already when the window opened, in a tensor made before."""
    entered = found.op.op.startswith(op_diff.ENTERS)
    return window.first > 2 and found.kind is op_diff.Kind.OUTSIDE and not entered and not found.op.key
