"""Instrumented runs: pairs of them that differ, and the tensors of one operation."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from detaudit import store, wire
from detaudit.judge import comparer, tensors
from detaudit.launch.plan import GroupPlan
from detaudit.model import ALL_STEPS, Difference, How, Number, Pass, Status, TensorPair, Warning
from detaudit.model.trace import at_steps
from detaudit.model.warnings import InstrumentedRunUnusable
from detaudit.runner import Limits, Observer, Result, Runner
from detaudit.runs.formats import npy, npz
from detaudit.runs.log import Process, trainings
from detaudit.trace import align
from detaudit.trace import operations as op_records
from detaudit.trace.align import Spread
from detaudit.trace.operations import Saved

_Kept = tuple[op_records.TensorLine, bytes]


@dataclass(frozen=True)
class RunPair:
    """Two instrumented runs, where they first differ, and the folders of their records."""

    a: Result
    b: Result
    folders: tuple[Path, Path]
    differs: Difference

    def processes(self) -> tuple[Process, Process] | None:
        """Return the two processes that differ, None if one run has no such rank."""
        output = self.differs.output.path if self.differs.output else (self.differs.site or "").partition(": ")[0]
        both = [_of_rank(result.processes, self.differs.rank, output) for result in (self.a, self.b)]
        return (both[0], both[1]) if both[0] and both[1] else None

    def paths(self) -> tuple[Path | None, Path | None]:
        """Return the records of those two processes, None for one that left none."""
        both = self.processes()
        if both is None:
            return None, None
        return op_records.path_of(self.folders[0], both[0]), op_records.path_of(self.folders[1], both[1])

    def first_operation(self, spread: Spread | None = None) -> align.OpFinding | None:
        """Return the first operation, or call of a module, at which two processes differ; ``spread`` counts all."""
        return align.first_differing_operation(*map(op_records.operations, self.paths()), spread=spread)

    def losses(self) -> tuple[Mapping[int, Number], Mapping[int, Number]]:
        """Return the losses of those two processes by step."""
        rank = self.differs.rank
        sides = [result.record.parts[rank : rank + 1] for result in (self.a, self.b)]
        a, b = (parts[0].losses if parts else {} for parts in sides)
        return a, b

    def where_it_began(self) -> "RunPair":
        """Return the same of the first rank that differs in more than the result of a collective, if several differ."""
        for rank in self.differs.ranks if self.differs.also else ():
            others = tuple(one for one in self.differs.ranks if one != rank)
            pair = replace(self, differs=structs.replace(self.differs, rank=rank, also=others))
            finding = pair.first_operation()
            if finding is not None and not (finding.how is How.OUTPUT and finding.op.is_collective):
                return pair
        return self


@dataclass(frozen=True)
class Window:
    """The steps to record."""

    first: int
    last: int


EVERY_STEP = Window(0, ALL_STEPS)


def _of_rank(processes: Sequence[Process], rank: int, output: str = "") -> Process | None:
    """Return the process that did the training with this rank; if nothing is trained, the one that wrote a file.

    If none of them wrote this ``output``, it is the first that was started.
    """
    with_training = [process for process, _ in trainings(processes)]
    if with_training:
        return with_training[rank] if rank < len(with_training) else None
    wrote = (one for one in processes if any(line.path.endswith(f"/{output}") for line in one.wrote))
    return next(wrote, None) or min(processes, key=lambda one: one.hello.started, default=None)


class InstrumentedRuns:
    """Starts instrumented runs, at most ``most`` of a level; ``passes`` lists them.

    ``numbers`` are those of the two runs that differ, whose environments are different if something varies.
    ``trained_by`` is how many processes of a run train: it is ended when all of them are past the window. ``calls``
    says that nothing is trained, so that steps are calls of models. ``racing`` are the operations that are known to
    race. ``every_step`` are all steps, or those that runs without instrumentation did if all were ended early.
    ``failures`` are the instrumented runs that failed, ``matching`` those of the last pass if they all match.
    The call of an operation whose tensors are recorded is saved if its inputs are smaller than ``saves_calls_below``
    bytes: ``saved`` has it, and the place of the output that differs.
    """

    def __init__(self, runner: Runner, plan: GroupPlan, observer: Observer, most: int) -> None:
        self.passes: list[Pass] = []
        self.total_runs = 0
        self.trained_by = 1
        self.numbers = (1, 1)
        self.calls = False
        self.every_step = EVERY_STEP
        self.racing: tuple[str, ...] = ()
        self.failures: list[Warning] = []
        self.matching: list[Result] = []
        self.saves_calls_below = 0
        self.saved: tuple[int, Saved | None] = 0, None
        self._latest: dict[str, tuple[Result, Path]] = {}
        self._runner, self._plan, self._observer, self._most = runner, plan, observer, most

    def pair(self, level: str, window: Window, most: int | None = None) -> RunPair | None:
        """Return two runs that differ in or before the window, None if all match, of which there are ``most``."""
        most = most or self._most
        self._observer.group_started(f"{level} {at_steps(window.first, window.last)}", most)
        reference, folder = self._run(level, window, self.numbers[0])
        first, runs, differing, self.matching = self.total_runs, 1, None, [reference]
        self._latest[level] = reference, folder
        while differing is None and runs < most and not self.failures:
            other, other_folder = self._run(level, window, self.numbers[1])
            runs += 1
            through = window.last if window.last < ALL_STEPS else None  # else what is left at the end counts too
            differs = (
                comparer.first_difference(reference.record, other.record, through=through)
                if not self.failures
                else None
            )
            differing = RunPair(reference, other, (folder, other_folder), differs).where_it_began() if differs else None
            self.matching = [] if differing else [*self.matching, other]
        differs = differing.differs if differing else None
        self.passes.append(
            Pass(
                level=level,
                first_step=window.first,
                last_step=window.last,
                runs=runs,
                first_difference=differs,
                run_ids=tuple(range(first, first + runs)),
            )
        )
        return differing

    def operations(self, level: str) -> Iterator[op_records.OpLine]:
        """Yield the operations of the last run of this level."""
        if level in self._latest:
            result, folder = self._latest[level]
            for process in result.processes:
                yield from op_records.operations(op_records.path_of(folder, process))

    def tensors(
        self, window: Window, op: op_records.OpLine, nth: int | None, role: str, rank: int, dump: Path | None
    ) -> TensorPair | None:
        """Return how a tensor of one operation differs between two runs, None if it does not again."""
        selector = {"key": op.key} if op.key else {"thread": op.thread, "n": nth}
        seen: list[_Kept] = []
        while len(seen) < self._most:
            saves = {"call": self.saves_calls_below} if self.saves_calls_below and not seen else {}
            result, folder = self._run("tensors", window, self.numbers[min(1, len(seen))], **selector, **saves)
            process = _of_rank(result.processes, rank)
            path = op_records.path_of(folder, process) if process else None
            if saves:
                self.saved = int(role.removeprefix("out")), op_records.read_call(path)
            kept = _kept(path, role)
            if kept is None:
                return None
            other = next((one for one in seen if one[1] != kept[1] and one[0].shape == kept[0].shape), None)
            if other is not None:
                return _pair(other, kept, dump)
            seen.append(kept)
        return None

    def _run(self, level: str, window: Window, number: int, **details: object) -> tuple[Result, Path]:
        self.total_runs += 1
        steps = {"first": window.first, "last": window.last}
        asked = json.dumps({"level": level, **steps, "racing": self.racing, "calls": self.calls, **details})
        spec = self._plan.spec(number)
        folder = self._plan.folder.parent / "instrumented" / str(self.total_runs)
        spec = replace(spec, env={**spec.env, wire.ENV_WATCH: asked}, folder=folder)
        limits = Limits(last_step=window.last, trained_by=self.trained_by)
        result = self._runner.run(self.total_runs, spec, limits)
        self._observer.run_finished(result.run)
        if result.run.status not in (Status.OK, Status.STOPPED):
            self.failures.append(InstrumentedRunUnusable(level=level, errors=result.run.errors))
        return result, folder


def _kept(path: Path | None, role: str) -> _Kept | None:
    for line in op_records.read(path):
        if isinstance(line, op_records.TensorLine) and line.role == role and path is not None:
            try:
                return line, (path.parent / line.file).read_bytes()
            except OSError:
                return None
    return None


def _pair(a: _Kept, b: _Kept, dump: Path | None) -> TensorPair | None:
    line = a[0]
    try:
        difference = tensors.difference(line.dtype, line.shape, a[1], b[1])
    except ValueError:
        return None
    if difference is None:
        return None
    kept = _dump(dump, line, a[1], b[1]) if dump else None
    return TensorPair(dtype=line.dtype, shape=line.shape, difference=difference, saved_to=kept)


def _dump(path: Path, line: op_records.TensorLine, a: bytes, b: bytes) -> str:
    """Save both tensors, under the names ``a`` and ``b``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files = {name: npy.written(line.dtype, line.shape, raw) for name, raw in (("a", a), ("b", b))}
    store.write(path, npz.written(files))
    return str(path)
