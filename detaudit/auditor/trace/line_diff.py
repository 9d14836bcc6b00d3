"""Find where two runs took different code paths, and where a variable first differed, from their recorded lines."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from detaudit import wire
from detaudit.auditor.evidence.event_records import Line
from detaudit.auditor.trace.line_records import Assigned
from detaudit.auditor.trace.line_runs import LinePair, Place, Rest, together


@dataclass(frozen=True)
class Fork:
    """Two runs took different paths: after ``last``, one ran ``a`` next and the other ``b``; None if one ended.

    If it is not ``exact``, they diverged somewhere after ``last``, in the part of a step that was kept as a digest.
    """

    thread: str
    step: int
    last: Place | None
    a: Place | None
    b: Place | None
    exact: bool = True

    @property
    def order(self) -> tuple[int, bool, str]:
        """The sort key: steps are ordered across threads, lines of different threads are not."""
        return self.step, self.thread != wire.MAIN_THREAD, self.thread


@dataclass(frozen=True)
class Differing:
    """A variable with different values in the two runs after the same line; None if one recorded no change."""

    a: Assigned | None
    b: Assigned | None

    @property
    def one(self) -> Assigned:
        """Either of the two: thread, file, line and name are the same."""
        found = self.a or self.b
        if found is None:
            raise ValueError("neither run recorded this variable")
        return found

    @property
    def reordered(self) -> bool:
        """Whether both hold the same elements in a different order."""
        return self.a is not None and self.b is not None and bool(self.a.bag) and self.a.bag == self.b.bag

    @property
    def order(self) -> tuple[int, int]:
        """What comes first."""
        return self.one.step, self.one.n


def _fork(pair: LinePair) -> Fork:
    of_a, of_b = (side.lines[0] if side else None for side in (pair.a, pair.b))
    last = None if isinstance(pair.last, Rest) else pair.last
    if isinstance(of_a, Rest) or isinstance(of_b, Rest):
        return Fork(pair.thread, pair.step, last, None, None, exact=False)
    return Fork(pair.thread, pair.step, last, of_a, of_b)


def fork(a: Iterable[Line], b: Iterable[Line]) -> Fork | None:
    """Return where two processes first took different paths, None if they did not.

    A thread that was cut off, as at the end of the window, took none; nor did one that only one process has.
    """
    found = [_fork(pair) for pair, _ in together(a, b) if pair.parted]
    return min(found, key=lambda one: one.order, default=None)


def assignments(a: Iterable[Line], b: Iterable[Line]) -> Iterator[Differing]:
    """Yield every difference in assigned values, as long as a thread ran the same lines in both processes.

    Within a thread, they are in the order of execution. Some are harmless, such as the time.
    """
    for pair, over in together(a, b):
        for of_a, of_b in pair.values(over):
            if of_a is None or of_b is None or of_a.digest != of_b.digest:
                yield Differing(of_a, of_b)
