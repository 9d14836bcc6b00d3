"""Where two runs that were watched line by line went different ways, and where a variable first differed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from detaudit import wire
from detaudit.auditor.evidence.event_records import Line
from detaudit.auditor.trace.line_records import Assigned
from detaudit.auditor.trace.line_runs import Pair, Place, Rest, together


@dataclass(frozen=True)
class Fork:
    """Two runs took different ways: after ``last``, one ran ``a`` next and the other ``b``; None where one ended.

    Where it is not ``exact`` they parted somewhere after ``last``, in the part of a step of which a digest was kept.
    """

    thread: str
    step: int
    last: Place | None
    a: Place | None
    b: Place | None
    exact: bool = True

    @property
    def order(self) -> tuple[int, bool, str]:
        """What comes first: steps have a common clock, lines of different threads have none."""
        return self.step, self.thread != wire.MAIN_THREAD, self.thread


@dataclass(frozen=True)
class Differing:
    """A variable that holds something else in the two runs after the same line; None where one saw no change."""

    a: Assigned | None
    b: Assigned | None

    @property
    def one(self) -> Assigned:
        """Either of them: thread, file, line and name are the same."""
        told = self.a or self.b
        if told is None:
            raise ValueError("neither run told of this variable")
        return told

    @property
    def how(self) -> Literal["order", "value"]:
        """Whether both hold the same elements in another order."""
        if self.a is None or self.b is None or not self.a.bag:
            return "value"
        return "order" if self.a.bag == self.b.bag else "value"

    @property
    def order(self) -> tuple[int, int]:
        """What comes first."""
        return self.one.step, self.one.n


def _fork(pair: Pair) -> Fork:
    of_a, of_b = (side.lines[0] if side else None for side in (pair.a, pair.b))
    last = None if isinstance(pair.last, Rest) else pair.last
    if isinstance(of_a, Rest) or isinstance(of_b, Rest):
        return Fork(pair.thread, pair.step, last, None, None, exact=False)
    return Fork(pair.thread, pair.step, last, of_a, of_b)


def fork(a: Iterable[Line], b: Iterable[Line]) -> Fork | None:
    """Return where two processes first went different ways.

    A thread that was cut off, as at the end of the window, went no other way; nor did one that only one of them has.
    """
    found = [_fork(pair) for pair, _ in together(a, b) if pair.parted]
    return min(found, key=lambda one: one.order, default=None)


def assignments(a: Iterable[Line], b: Iterable[Line]) -> Iterator[Differing]:
    """Yield every difference in what was assigned, for as long as a thread ran the same lines in both processes.

    Within a thread they come in the order in which they ran. Some do no harm, such as a clock that was read.
    """
    for pair, over in together(a, b):
        for of_a, of_b in pair.values(over):
            if of_a is None or of_b is None or of_a.digest != of_b.digest:
                yield Differing(of_a, of_b)
