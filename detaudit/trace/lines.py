"""Lines and variables of two runs, followed as long as they agree."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from detaudit import wire
from detaudit.runs.log_records import UNREADABLE, Line

# Decode the lines of user code that an instrumented run recorded; wire.py describes them.


_Count: TypeAlias = Annotated[int, Meta(ge=1)]
_Lines: TypeAlias = Annotated[tuple[int, ...], Meta(min_length=1)]


class LineSequence(Line, frozen=True, tag="path"):
    """A sequence of lines that a thread ran; from here on, its number stands for it."""

    thread: str
    id: int
    lines: Annotated[tuple[tuple[str, _Lines], ...], Meta(min_length=1)]


class Ran(Line, frozen=True, tag="line"):
    """The lines that a thread ran in a step, or in a part of one."""

    thread: str
    step: int
    paths: tuple[tuple[int, _Count], ...]
    more: tuple[_Count, str] | None = None
    ended: bool = False


class Assigned(Line, frozen=True, tag="assigned"):
    """The value of a variable after a line, the ``at``-th that its thread ran."""

    n: int
    thread: str
    at: int
    step: int
    file: str
    line: int
    name: str
    digest: str
    bag: str = ""
    text: str = ""


class Opened(Line, frozen=True, tag="opened"):
    """A file below the working directory that a line of user code opened for reading."""

    path: str
    file: str
    line: int


DECODER = msgspec.json.Decoder(LineSequence | Ran | Assigned | Opened)


def watched(path: Path) -> Iterator[Line]:
    """Yield the lines of these kinds in a file, up to the first torn one."""
    with path.open("rb") as file:
        for raw in file:
            try:
                yield DECODER.decode(raw)
            except msgspec.ValidationError:
                continue  # of another kind
            except UNREADABLE:
                return


# Follow two runs, thread by thread and line by line, as long as they do the same.


class CodeLine(NamedTuple):
    """A line of user code."""

    file: str
    line: int


class Remainder(NamedTuple):
    """Lines of which only the number and a digest were recorded."""

    lines: int
    digest: str


@dataclass
class _Part:
    """What a thread did in a step: ``ran`` has the lines of each sequence and its repetitions."""

    thread: str
    step: int
    ran: list[tuple[tuple[CodeLine | Remainder, ...], int]]
    ended: bool
    assigned: list[Assigned]


def _parts(lines: Iterable[Line]) -> Iterator[_Part]:
    """Match what belongs together. Values after the last recorded lines of a thread are left out."""
    stretches: dict[tuple[str, int], tuple[CodeLine | Remainder, ...]] = {}
    assigned: dict[str, list[Assigned]] = {}
    for line in lines:
        match line:
            case LineSequence():
                places = tuple(CodeLine(file, number) for file, numbers in line.lines for number in numbers)
                stretches[line.thread, line.id] = places
            case Assigned():
                assigned.setdefault(line.thread, []).append(line)
            case Ran():
                if any((line.thread, number) not in stretches for number, _ in line.paths):
                    return  # the log is damaged
                ran = [(stretches[line.thread, number], count) for number, count in line.paths]
                if line.more is not None:
                    ran.append(((Remainder(*line.more),), 1))
                yield _Part(line.thread, line.step, ran, line.ended, assigned.pop(line.thread, []))
            case _:
                pass


class _Side:
    """What a thread of one run did that has not been compared yet."""

    def __init__(self) -> None:
        self._ran: deque[tuple[int, tuple[CodeLine | Remainder, ...], int]] = deque()
        self._offset = 0
        self.assigned: deque[Assigned] = deque()
        self.ended = False

    def take(self, part: _Part) -> None:
        self._ran.extend((part.step, lines, count) for lines, count in part.ran)
        self.assigned.extend(part.assigned)
        self.ended = part.ended

    def __bool__(self) -> bool:
        return bool(self._ran)

    @property
    def step(self) -> int:
        return self._ran[0][0]

    @property
    def lines(self) -> tuple[CodeLine | Remainder, ...]:
        """The next lines, as far as they are known."""
        return self._ran[0][1][self._offset :] if self._offset else self._ran[0][1]

    @property
    def times(self) -> int:
        """The number of repetitions of these lines."""
        return 1 if self._offset else self._ran[0][2]

    def skip(self, lines: int, times: int = 1) -> None:
        """Skip this many lines, or this many repetitions of all of them."""
        step, stretch, count = self._ran[0]
        done, self._offset = divmod(self._offset + lines, len(stretch))
        left = count - done * times
        if left:
            self._ran[0] = step, stretch, left
        else:
            self._ran.popleft()

    def clear(self) -> None:
        self._ran.clear()
        self.assigned.clear()


@dataclass
class LinePair:
    """One thread in both runs: the number of equal lines, the last of them, and whether the runs diverged then."""

    thread: str
    a: _Side = field(default_factory=_Side)
    b: _Side = field(default_factory=_Side)
    common: int = 0
    step: int = 0
    last: CodeLine | Remainder | None = None
    parted: bool = False

    def advance(self) -> None:
        """Compare what both runs recorded."""
        while self.a and self.b and not self.parted:
            of_a, of_b = self.a.lines, self.b.lines
            self.step = min(self.a.step, self.b.step)
            if of_a == of_b:
                times = min(self.a.times, self.b.times)
                self._pass(of_a, times)
                continue
            alike = next((n for n, (x, y) in enumerate(zip(of_a, of_b, strict=False)) if x != y), None)
            length = min(len(of_a), len(of_b)) if alike is None else alike
            if length:
                self._pass(of_a[:length], 1)
            self.parted = alike is not None

    def _pass(self, lines: tuple[CodeLine | Remainder, ...], times: int) -> None:
        self.common += times * sum(line.lines if isinstance(line, Remainder) else 1 for line in lines)
        self.last = lines[-1]
        for side in (self.a, self.b):
            side.skip(len(lines), times)

    def let_go(self) -> None:
        """Forget the rest of a thread that diverged."""
        if self.parted:
            self.a.clear()
            self.b.clear()

    def settle(self) -> None:
        """Note that nothing more comes: if the thread ended in one run and not in the other, the runs diverged."""
        if not self.parted and bool(self.a) != bool(self.b):
            longer, shorter = (self.a, self.b) if self.a else (self.b, self.a)
            self.parted = shorter.ended
            self.step = longer.step

    def values(self, over: bool) -> Iterator[tuple[Assigned | None, Assigned | None]]:
        """Yield what the same line assigned in both runs; None if one of them saw no change.

        At the last common line both must have recorded a value: what else was examined depends on the line after it.
        """
        while self.a.assigned or self.b.assigned:
            at = min(side.assigned[0].at for side in (self.a, self.b) if side.assigned)
            if at > self.common or (at == self.common and not over):
                break
            of_a, of_b = _taken(self.a.assigned, at), _taken(self.b.assigned, at)
            for key in {**of_a, **of_b}:
                both = of_a.get(key), of_b.get(key)
                if at < self.common or None not in both:
                    yield both


def _taken(assigned: deque[Assigned], at: int) -> dict[tuple[str, int, str], Assigned]:
    taken = {}
    while assigned and assigned[0].at <= at:
        one = assigned.popleft()
        taken[one.file, one.line, one.name] = one
    return taken


def together(a: Iterable[Line], b: Iterable[Line]) -> Iterator[tuple[LinePair, bool]]:
    """Yield each thread whenever more of it could be compared, and once more when all is known.

    The records of one run are kept until the other has as many of the same thread, and not longer.
    """
    pairs: dict[str, LinePair] = {}
    for parts in zip_longest(_parts(a), _parts(b)):
        for part, side in zip(parts, "ab", strict=True):
            if part is None:
                continue
            pair = pairs.setdefault(part.thread, LinePair(part.thread))
            if not pair.parted:
                getattr(pair, side).take(part)
                pair.advance()
                yield pair, pair.parted
                pair.let_go()
    for pair in pairs.values():
        if not pair.parted:
            pair.settle()
            yield pair, True


# Find where two runs took different code paths, and where a variable first differed, from their recorded lines.


@dataclass(frozen=True)
class Fork:
    """Two runs took different paths: after ``last``, one ran ``a`` next and the other ``b``; None if one ended.

    If it is not ``exact``, they diverged somewhere after ``last``, in the part of a step that was kept as a digest.
    """

    thread: str
    step: int
    last: CodeLine | None
    a: CodeLine | None
    b: CodeLine | None
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
        assigned = self.a or self.b
        if assigned is None:
            raise ValueError("neither run recorded this variable")
        return assigned

    @property
    def reordered(self) -> bool:
        """Whether both hold the same elements in a different order."""
        return self.a is not None and self.b is not None and bool(self.a.bag) and self.a.bag == self.b.bag

    @property
    def is_set(self) -> bool:
        """Whether both are sets of the same elements."""
        return self.reordered and self.one.digest.startswith(("set:", "frozenset:"))

    @property
    def order(self) -> tuple[int, int]:
        """What comes first."""
        return self.one.step, self.one.n


def _fork(pair: LinePair) -> Fork:
    of_a, of_b = (side.lines[0] if side else None for side in (pair.a, pair.b))
    last = None if isinstance(pair.last, Remainder) else pair.last
    if isinstance(of_a, Remainder) or isinstance(of_b, Remainder):
        return Fork(pair.thread, pair.step, last, None, None, exact=False)
    return Fork(pair.thread, pair.step, last, of_a, of_b)


def fork(a: Iterable[Line], b: Iterable[Line]) -> Fork | None:
    """Return where two processes first took different paths, None if they did not.

    A thread that was cut off, as at the end of the window, took none; nor did one that only one process has.
    """
    forks = [_fork(pair) for pair, _ in together(a, b) if pair.parted]
    return min(forks, key=lambda one: one.order, default=None)


def assignments(a: Iterable[Line], b: Iterable[Line]) -> Iterator[Differing]:
    """Yield every difference in assigned values, as long as a thread ran the same lines in both processes.

    Within a thread, they are in the order of execution. Some are harmless, such as the time.
    """
    for pair, over in together(a, b):
        for of_a, of_b in pair.values(over):
            if of_a is None or of_b is None or of_a.digest != of_b.digest:
                yield Differing(of_a, of_b)
