"""The first operation at which two runs differ, and how a difference spreads."""

from collections import Counter, OrderedDict, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from detaudit import wire
from detaudit.model import How, Number, StepSpread
from detaudit.trace.operations import MOST_KEPT, Entry, MemoryState, OpLine, differing_number

# How a difference spreads: in how many operations of each step two runs differ.


MOST_STEPS = 32
"""Steps that are reported, from the first one on in which an operation differs."""


class Spread:
    """Counts the operations that two runs have in common, by step."""

    def __init__(self) -> None:
        self._operations: Counter[int] = Counter()
        self._differing: Counter[int] = Counter()
        self._absorbing: Counter[int] = Counter()

    def add(self, step: int, *, takes: bool, returns: bool) -> None:
        """Add an operation, and whether what it ``takes`` and what it ``returns`` differs."""
        self._operations[step] += 1
        self._differing[step] += returns
        self._absorbing[step] += takes and not returns

    def steps(self, a: Mapping[int, Number], b: Mapping[int, Number]) -> tuple[StepSpread, ...]:
        """Return the steps from the first difference on, with the losses of both runs; none if nothing differs."""
        first = min((step for step, number in self._differing.items() if number), default=None)
        if first is None:
            return ()
        return tuple(
            StepSpread(
                step=step,
                operations=self._operations[step],
                differing=self._differing[step],
                absorbing=self._absorbing[step],
                losses=(a[step], b[step]) if step in a and step in b else None,
            )
            for step in sorted(step for step in self._operations if step >= first)[:MOST_STEPS]
        )


# Find the first operation at which two runs differ, from the operations that each ran.


AHEAD = 64
"""How many operations of a thread are searched for the place where two streams meet again."""

_RESYNC = 3
"""How many operations must be the same for two streams to have met again."""

_MOST_CANDIDATES = 1000
_MOST_CAUSES = 8

ENTERS = ("aten.lift_fresh", "aten.set_")


@dataclass(frozen=True)
class OpFinding:
    """The first difference: the operation in either run, None if a run had ended.

    ``index`` is that of the input, or output, that differs, ``argument`` the name of the number that does.
    ``before`` is the operation to examine first: the one that took uninitialized memory, the last writer, or the last
    one that both runs have in common. ``nth`` is the number of the operation in its thread, from 0; None once the
    streams of a thread have diverged.
    """

    how: How
    a: OpLine | None
    b: OpLine | None
    index: int = 0
    before: OpLine | None = None
    nth: int | None = None
    argument: str = ""
    forked: "OpFinding | None" = None

    @property
    def op(self) -> OpLine:
        """The operation in the first run that has one."""
        line = self.a or self.b
        if line is None:
            raise ValueError("a finding without an operation")
        return line

    @property
    def brought(self) -> bool:
        """Whether the difference entered by an operation without inputs, such as a dataset's next element."""
        return self.how is How.OUTPUT and not self.op.ins


class _Thread:
    """The operations of one thread or one key that are not matched yet."""

    def __init__(self) -> None:
        self.waiting: tuple[deque[Entry], deque[Entry]] = (deque(), deque())
        self.count = 0
        self.last: OpLine | None = None
        self.parted = False
        self.forked = False


@dataclass
class _Candidate:
    """A difference that came from nowhere; ``spread`` once something that was made of it differs too.

    It is ``lost`` if it is followed no further: nobody knows whether it was absorbed. It is ``returned`` once Python
    has read it, as with ``item()``: a number that differs later may be made of it.
    """

    finding: OpFinding
    spread: bool = False
    lost: bool = False
    returned: bool = False


def first_differing_operation(
    a: Iterable[OpLine], b: Iterable[OpLine], *, spread: Spread | None = None
) -> OpFinding | None:
    """Return the first difference between two runs that has a consequence, None if there is none.

    Operations that run in no order are matched by their keys, others by their place in their thread. A pair is
    complete when both runs have reached it, so a consequence, which in each run comes after its cause, completes after
    it too. Streams that diverge are followed to where they meet again.

    A difference that nothing takes up, such as in a workspace of which a part is never written, counts only if no other
    does; one that all operations absorb does not count. ``spread`` counts the operations that both runs have.
    """
    comparison = _Comparison(spread)
    for pair in zip_longest(a, b):
        for side, op in enumerate(pair):
            if op is not None:
                comparison.arrived(side, op)
    return comparison.answer()


class _Comparison:
    def __init__(self, spread: Spread | None = None) -> None:
        self._spread = spread or Spread()
        self._sides = (MemoryState(), MemoryState())
        self._threads: dict[Hashable, _Thread] = {}
        self._fork: OpFinding | None = None
        self._candidates: list[_Candidate] = []
        self._tainted: OrderedDict[Hashable, list[_Candidate]] = OrderedDict()

    def answer(self) -> OpFinding | None:
        """Return the first difference, once all operations of both runs were added."""
        for thread in self._threads.values():
            self._drain(thread, at_end=True)
        candidate = next((one for one in self._candidates if one.spread), None)
        absorbed = {id(one) for one in self._candidates} - {
            id(one) for causes in self._tainted.values() for one in causes
        }
        if candidate is None and self._fork is None:
            candidate = next((one for one in self._candidates if one.lost or id(one) not in absorbed), None)
        if candidate is None:
            return self._fork
        first = self._reclassify(candidate.finding)
        # Once the code paths have diverged, only a kernel with identical inputs is still to blame.
        blamed = self._fork is None or first.forked is None or first.how is How.OUTPUT
        return first if blamed else self._fork

    def arrived(self, side: int, op: OpLine) -> None:
        """Add the next operation of a run."""
        entry = self._sides[side].take(op)
        key = op.key or ("thread", op.thread)
        thread = self._threads.setdefault(key, _Thread())
        thread.waiting[side].append(entry)
        self._drain(thread, at_end=False)
        if op.key and not any(thread.waiting):
            self._threads.pop(key)

    def _drain(self, thread: _Thread, *, at_end: bool) -> None:
        ours, theirs = thread.waiting
        while ours and theirs and not thread.parted:
            if ours[0].op.signature != theirs[0].op.signature:
                if not at_end and min(len(ours), len(theirs)) < AHEAD:
                    return
                self._part(thread)
                continue
            a, b = ours.popleft(), theirs.popleft()
            self._pair(a, b, None if thread.forked else thread.count)
            thread.last, thread.count = a.op, thread.count + 1

    def _part(self, thread: _Thread) -> None:
        """Skip to where the streams of a thread meet again; if they do not, it is followed no further."""
        ours, theirs = thread.waiting
        self._fork = self._fork or OpFinding(How.CONTROL_FLOW, ours[0].op, theirs[0].op, before=thread.last)
        thread.forked = True
        signs = [[entry.op.signature for entry in list(side)[:AHEAD]] for side in (ours, theirs)]
        skips = sorted(((i, j) for i in range(len(signs[0])) for j in range(len(signs[1]))), key=sum)
        for i, j in skips:
            ahead = signs[0][i : i + _RESYNC]
            if ahead == signs[1][j : j + _RESYNC] and len(ahead) == _RESYNC:
                for side, count in ((ours, i), (theirs, j)):
                    for _ in range(count):
                        side.popleft()
                return
        thread.parted = True

    def _pair(self, a: Entry, b: Entry, nth: int | None) -> None:
        ins = [i for i, (x, y) in enumerate(zip(a.op.ins, b.op.ins, strict=True)) if x[0] != y[0]]
        outs = [i for i, (x, y) in enumerate(zip(a.op.outs, b.op.outs, strict=False)) if x[0] != y[0]]
        number = differing_number(a.op, b.op, ins) if outs or a.op.uninitialized else ""
        self._spread.add(a.op.step, takes=bool(ins), returns=bool(outs))
        written = bool(outs)
        if number and not outs:
            outs = [*range(len(a.op.outs))]  # of another size, which counts as soon as something is written to it
        unread = [i for i, (digest, _) in enumerate(a.op.ins) if not digest]
        causes = [cause for i in (*ins, *unread) for cause in self._tainted.get(_mark(a.op.ins[i]), ())]
        for digest, storage, complete in a.op.outs:
            if complete:
                self._tainted.pop(_mark((digest, storage)), None)
        for cause in () if a.op.outs else causes:
            cause.returned = True
        if not outs:
            return
        causes = causes or [cause for cause in self._candidates if number and cause.returned]
        for cause in causes:
            cause.spread = True
        if not causes and (number or not ins or not a.op.key):
            # The cause of operations that run in no order may be recorded after its consequence.
            finding = self._finding(a, b, ins, outs, number, nth)
            causes = [_Candidate(replace(finding, forked=self._fork), spread=written and bool(ins or number))]
            self._candidates += causes if len(self._candidates) < _MOST_CANDIDATES else ()
        for i in outs:
            self._tainted[_mark(a.op.outs[i])] = causes[:_MOST_CAUSES]
        while len(self._tainted) > MOST_KEPT:
            for one in self._tainted.popitem(last=False)[1]:
                one.lost = True

    def _finding(
        self, a: Entry, b: Entry, ins: Sequence[int], outs: Sequence[int], number: str, nth: int | None
    ) -> OpFinding:
        if number and not (number.startswith(wire.START) and ins):
            return OpFinding(How.ARGUMENT, a.op, b.op, nth=nth, argument=number)
        finding = self._input(a, b, ins[0], nth) if ins else _output(a.op, b.op, outs[0], nth)
        by_argument = number and finding.how in (How.INPUT, How.CONCURRENT_WRITE)  # a part of the same memory
        return replace(finding, how=How.ARGUMENT, argument=number) if by_argument else finding

    def _input(self, a: Entry, b: Entry, index: int, nth: int | None) -> OpFinding:
        mine, other = a.inputs[index], b.inputs[index]
        (x, storage), (y, _) = a.op.ins[index], b.op.ins[index]
        finding = OpFinding(How.INPUT, a.op, b.op, index, nth=nth)
        if a.op.op.startswith(ENTERS):
            return finding
        if x and y and x in self._sides[1].seen and y in self._sides[0].seen:
            return replace(finding, how=How.REORDERED, before=mine.writer)
        if mine.uninitialized is not None or other.uninitialized is not None:
            return replace(finding, how=How.UNINITIALIZED, before=mine.uninitialized or other.uninitialized)
        if (mine.writer is None and storage not in a.op.shared) or _shape(x) != _shape(y):
            return finding
        return replace(finding, how=How.CONCURRENT_WRITE, before=mine.writer)

    def _reclassify(self, finding: OpFinding) -> OpFinding:
        """Return ``finding`` as a reordering if each run has both values somewhere."""
        if finding.how is How.CONCURRENT_WRITE and finding.before is None:
            return replace(finding, before=self._sides[0].writers.get(finding.op.ins[finding.index][1]))
        unexplained = finding.how in (How.INPUT, How.CONCURRENT_WRITE) or finding.argument.startswith(wire.START)
        if not unexplained or finding.a is None or finding.b is None:
            return finding
        if finding.how is How.CONCURRENT_WRITE and (
            finding.a.shared or finding.b.shared or finding.a.updates(finding.index)
        ):
            return finding
        mine, theirs = (op.came_in(finding.index) for op in (finding.a, finding.b))
        both = mine != theirs and mine in self._sides[1].seen and theirs in self._sides[0].seen
        return replace(finding, how=How.REORDERED) if both else finding


def _shape(digest: str) -> str:
    """Return the type and the shape of a tensor, of which a view may have taken more than another one."""
    return digest.rpartition(":")[0]


def _mark(tensor: tuple[str, int] | tuple[str, int, bool]) -> Hashable:
    """Return what a difference is followed by: the storage, or what is in it if that is not known."""
    return tensor[1] if tensor[1] >= 0 else tensor[0].rpartition(":")[2]


def _output(a: OpLine, b: OpLine, index: int, nth: int | None) -> OpFinding:
    if a.op.startswith(ENTERS):
        return OpFinding(How.INPUT, a, b, index, nth=nth)
    if shared := a.shared or b.shared:  # it may be written to while the operation reads it
        return OpFinding(How.CONCURRENT_WRITE, a, b, a.place_of(shared[0]), nth=nth)
    random = a.random and (a.state != b.state or not a.state)
    return OpFinding(How.RNG_STATE if random else How.OUTPUT, a, b, index, nth=nth)
