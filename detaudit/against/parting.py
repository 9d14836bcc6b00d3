"""Where two codes part: the first operation of each that makes a tensor which the other never has.

Operations are matched by the tensors that they take and return, neither by their lines nor by their order: what was
moved, renamed or split into other functions is the same if it computes the same.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from detaudit.launch.plan import GroupPlan
from detaudit.model import Apart, CodePlace, Difference, Parting
from detaudit.model.trace import at_steps
from detaudit.runner import Observer, Result, Runner
from detaudit.runs.log import display_path
from detaudit.trace import operations as records
from detaudit.trace.instrumented import InstrumentedRuns, RunPair, Window
from detaudit.trace.operations import OpLine
from detaudit.trace.tracer import around


@dataclass(frozen=True)
class First:
    """The first operation with a tensor that the other side never has; it ``takes`` it, from nowhere, or makes it."""

    op: OpLine
    takes: bool


def parting_of(a: Sequence[OpLine], b: Sequence[OpLine]) -> tuple[First | None, First | None]:
    """Return the first operation of each side that has a tensor which the other never has, None if there is none."""
    return _first(a, _contents(b)), _first(b, _contents(a))


def _contents(operations: Iterable[OpLine]) -> set[str]:
    taken = {_content(digest) for op in operations for digest, _ in op.ins}
    return taken | {_content(digest) for op in operations for digest, *_ in op.outs}


def _content(digest: str) -> str:
    """Return what is in a tensor, whatever its shape."""
    return digest.rpartition(":")[2]


def _first(operations: Sequence[OpLine], others: set[str]) -> First | None:
    """Return the first operation with a tensor of its own side that a gradient or an update is made of.

    A backward pass is made of the tensor that it starts from. If there is none, as of what is only logged, it is the
    first of all.
    """
    firsts: dict[int, First] = {}
    origins: dict[str, int] = {}
    unwritten: set[str] = set()
    for number, op in enumerate(operations):
        taken = [one for digest, _ in op.ins if (one := _content(digest)) and one not in others | unwritten]
        made = [one for digest, *_ in op.outs if (one := _content(digest)) and one not in others]
        if op.uninitialized:
            unwritten |= {*made}
            continue
        causes = [origins[one] for one in taken if one in origins]
        if not causes and (taken or made):
            firsts[number] = First(op, takes=bool(taken))
            causes = [number]
        starts = any(one.backward for one in operations[number + 1 : number + 2])
        if causes and (op.backward or starts or any(map(op.updates, range(len(op.ins))))):
            return firsts[min(causes)]
        for one in (*taken, *made):
            origins.setdefault(one, min(causes))
    return next(iter(firsts.values()), None)


def how(a: First | None, b: First | None) -> tuple[Apart, str, tuple[str, str]]:
    """Return what differs where two codes part, and the number that does, with its two values, if it is one."""
    if a is None or b is None:
        return Apart.MORE, "", ("", "")
    if a.takes and b.takes:
        return Apart.INPUT, "", ("", "")
    if a.op.op != b.op.op:
        return Apart.OPERATION, "", ("", "")
    numbers = [name for name, value in a.op.scalars.items() if b.op.scalars.get(name, value) != value]
    if numbers:
        return Apart.NUMBER, numbers[0], (a.op.scalars[numbers[0]], b.op.scalars[numbers[0]])
    if [digest for digest, _ in a.op.ins] != [digest for digest, _ in b.op.ins]:
        return Apart.TENSORS, "", ("", "")
    return Apart.GENERATOR if a.op.random and a.op.state != b.op.state else Apart.OUTPUT, "", ("", "")


@dataclass(frozen=True)
class Turn:
    """How a side runs, and what lets it be at the path of the copy."""

    plan: GroupPlan
    show: Callable[[], None]


class InTurn(InstrumentedRuns):
    """Records what either side does."""

    def recorded(self, turn: Turn, window: Window, level: str = "ops") -> tuple[Result, Path]:
        """Return an instrumented run of a side, and the folder of its records."""
        turn.show()
        self._plan = turn.plan
        return self._run(level, window, 1)


def parting(
    runner: Runner,
    turns: Sequence[Turn],
    observer: Observer,
    first: Difference,
    results: Sequence[Result],
    cwd: Path,
) -> Parting | None:
    """Return where two sides part that first differ there, None if no operation of them was recorded.

    ``results`` are a run of each side, which has its turn in ``cwd``. If the first window shows nothing new, or a
    tensor that was made before it, all steps up to there are recorded.
    """
    instrumented = InTurn(runner, turns[0].plan, observer, 2)
    instrumented.trained_by = max(len(result.run.ranks) for result in results)
    parts = [part for result in results for part in result.record.parts]
    instrumented.calls = bool(parts) and all(part.is_inference for part in parts)
    window = around(first, 1)
    while True:
        observer.group_started(f"operations {at_steps(window.first, window.last)}", 2)
        (a, of_a), (b, of_b) = (instrumented.recorded(turn, window) for turn in turns)
        paths = RunPair(a, b, (of_a, of_b), first).paths()
        both = [[*records.operations(path)] for path in paths]
        ours, theirs = parting_of(*both)
        earlier = window.first > 0 and (ours is None or theirs is None or ours.takes or theirs.takes)
        if not earlier or not all(both):
            break
        window = Window(0, window.last)
    if ours is None and theirs is None:
        return None
    apart, number, values = how(ours, theirs)
    places = []
    for turn, one in zip(turns, (ours, theirs), strict=True):
        turn.show()
        places.append(_place(one.op, turn.plan.spec(1).cwd, cwd) if one is not None else None)
    step = min(one.op.step for one in (ours, theirs) if one is not None)
    return Parting(step=step, apart=apart, a=places[0], b=places[1], number=number, values=values)


def _place(op: OpLine, run: Path, cwd: Path) -> CodePlace:
    file = display_path(op.file, run) if op.file else ""
    code = ""
    with suppress(OSError, IndexError, UnicodeDecodeError):
        code = (cwd / file).read_text().splitlines()[op.line - 1].strip() if file else ""
    return CodePlace(operation=op.op, file=file, line=op.line, code=code, backward=op.backward)
