"""From the first difference to the culprit: line, cause, fixes, suspects."""

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs
from msgspec.structs import replace

from detaudit import rules, wire
from detaudit.config.choice import fix_flags, known
from detaudit.config.flags import Catalogue, Flag
from detaudit.config.variations import Variation
from detaudit.model import (
    COMPLETION,
    ORDERS,
    SEEDING,
    UNHOOKED,
    Argument,
    Boundary,
    Cause,
    Culprit,
    Difference,
    Divergence,
    Edit,
    FlagFix,
    Group,
    How,
    Narrowed,
    Operation,
    Source,
    SourceKind,
    Stage,
    TensorPair,
)
from detaudit.notebooks.cells import code_of, location_of
from detaudit.outputs.measurements import names_a_run
from detaudit.runs.log import display_path
from detaudit.runs.log_records import Line
from detaudit.source import origins, randomness
from detaudit.source.origins import Origin
from detaudit.trace import lines, operations
from detaudit.trace.align import OpFinding
from detaudit.trace.instrumented import EVERY_STEP, InstrumentedRuns, RunPair, Window
from detaudit.trace.lines import Differing, Fork
from detaudit.trace.operations import OpLine

# The best answer if no operation can be named: between which two events a difference enters.


def between_modules(finding: OpFinding, pair: RunPair, suspects: tuple[Source, ...]) -> Narrowed:
    """Return the answer for the first call of a module that differs."""
    op = finding.op
    side = "output" if finding.how is How.OUTPUT else "input"
    after = Boundary(module=op.module, side="input") if side == "output" else Boundary()
    before = Boundary(module=op.module, side=side)
    return Narrowed(step=op.step or pair.differs.step, after=after, before=before, suspects=suspects)


def between_stages(divergence: Divergence, recorded: Sequence[Stage], suspects: tuple[Source, ...]) -> Narrowed:
    """Return the answer for the first stage that differs."""
    earlier = [stage for stage in recorded if stage.position < divergence.stage.position and stage not in UNHOOKED]
    after = Boundary(stage=earlier[-1]) if earlier else Boundary()
    return Narrowed(step=divergence.step, after=after, before=Boundary(stage=divergence.stage), suspects=suspects)


# The user's files: how people name them, what a line says, and how to edit it.


@dataclass(frozen=True)
class UserCode:
    """``root`` has the files after the runs; ``cwd`` is where a run had them."""

    root: Path
    cwd: Path

    def display(self, file: str) -> str:
        """Return a file of a run as people name it."""
        return display_path(file, self.cwd)

    def text(self, file: str | None, line: int | None) -> str:
        """Return a line, ``""`` if it cannot be read."""
        if not file or not line:
            return ""
        try:
            lines = re.split(r"\r\n?|\n", code_of(self.root / file).decode(errors="replace"))
        except OSError:
            return ""
        return lines[line - 1].strip() if line <= len(lines) else ""

    def edit(
        self, file: str, line: int, kind: SourceKind, takers: Sequence[str] = (), sets: Sequence[str] = ()
    ) -> Edit | None:
        """Return the edit that fixes what is of this kind at a line, None if no safe one is known: see rules.edit."""
        return rules.edit(self.root, file, line, kind, takers, sets)

    def is_repeated(self, file: str, line: int, kind: SourceKind) -> bool:
        """Whether a line seeds a generator at a place where a constant seed repeats the same numbers."""
        return rules.is_repeated_in(self.root, file, line, kind)

    def origins(self, file: str, line: int) -> tuple[Origin, ...]:
        """Return what makes the values that are used at a line, nearest first; nothing if it cannot be read."""
        try:
            return tuple(origins.origins(code_of(self.root / file), line))
        except (OSError, SyntaxError, ValueError, RecursionError):
            return ()

    def handed_over(self, file: str, line: int) -> tuple[range, ...]:
        """Return the lines of the functions that a line gives to another; nothing if it cannot be read."""
        try:
            return tuple(origins.handed_over(code_of(self.root / file), line))
        except (OSError, SyntaxError, ValueError, RecursionError):
            return ()

    def suspect(self, file: str, origin: Origin) -> Source | None:
        """Return what the code of an expression shows that introduces a value that may differ, None if nothing."""
        for line, kind, call in randomness.scanned(self.root / file):
            if origin.line <= line <= origin.last and kind is not SourceKind.UNINITIALIZED:
                return Source(file=file, line=line, kind=kind, call=call, suspect=True)
        return None

    def classified(self, source: Source) -> Source:
        """Return a line that iterates over a set with the kind of its elements.

        Objects only keep their order if no set is made of them, so the edit that fixes them makes a dict.
        """
        if source.kind is not SourceKind.SET_ORDER:
            return source
        edit = self.edit(source.file, source.line, source.kind)
        of_objects = edit is not None and any("dict.fromkeys(" in line for line in edit.new)
        return replace(source, kind=SourceKind.OBJECT_SET_ORDER) if of_objects else source


# Which line of the user's code introduced a difference that entered before the framework, and what fixes it.


_SOURCE_CAUSES = {
    SourceKind.SEED: Cause.SEED,
    SourceKind.CLOCK: Cause.SEED,
    SourceKind.PROCESS_ID: Cause.SEED,
    SourceKind.UNSEEDED: Cause.SEED,
    SourceKind.ENTROPY: Cause.SEED,
    SourceKind.LISTING_ORDER: Cause.ORDER,
    SourceKind.LISTING_FILES: Cause.DATA,
    SourceKind.COMPLETION_ORDER: Cause.THREADS,
    SourceKind.COMPLETION_ORDER_OPTION: Cause.THREADS,
    SourceKind.SET_ORDER: Cause.HASH,
    SourceKind.OBJECT_SET_ORDER: Cause.ADDRESS,
    SourceKind.ROW_ORDER: Cause.ORDER,
    SourceKind.HASH: Cause.HASH,
    SourceKind.ADDRESS: Cause.ADDRESS,
    SourceKind.UNINITIALIZED: Cause.MEMORY,
    SourceKind.RACING_OPERATION: Cause.DATA,
    SourceKind.UNORDERED_OPERATION: Cause.DATA,
    SourceKind.SHARED_GENERATOR: Cause.THREADS,
    SourceKind.SYSTEM_VALUE: Cause.DATA,
    SourceKind.HYPERPARAMETER: Cause.HYPERPARAMETER,
}
"""The class of cause of each kind of line; what operations do to data is the data's."""


MOST_SUSPECTS = 5


@dataclass(frozen=True)
class Remedies:
    """What can fix a culprit: the flags, for the frameworks and the devices that a run recorded.

    ``varying`` are the variations that were asked to vary. ``files`` are the user's.
    """

    catalogue: Catalogue
    frameworks: Mapping[str, str]
    devices: Sequence[str]
    varying: tuple[Variation, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def varied(self) -> Variation | None:
        """The variation that varies between the runs; None if that is none, or not the only one."""
        return self.varying[0] if len(self.varying) == 1 else None

    def pinning(self, variation: Variation) -> tuple[FlagFix, ...]:
        """Return the flags that pin a variation."""
        return tuple(_fix(self.catalogue.get(name)) for name in variation.flags)

    def flags(self, cause: Cause, source: Source | None, op: str = "") -> tuple[FlagFix, ...]:
        """Return the flags that fix a culprit, best first."""
        of_order = Cause.ORDER if cause is Cause.ADDRESS else cause
        fixing = fix_flags(self.catalogue, of_order, self.frameworks, self.devices, source, op)
        return tuple(map(_fix, fixing))


def _fix(flag: Flag) -> FlagFix:
    return FlagFix(flag=flag.id, title=flag.title)


@dataclass(frozen=True)
class Attribution:
    """The answer of a trace: the line, what it does if that is known, the class of cause, and what fixes it."""

    file: str
    line: int
    source: Source | None
    cause: Cause
    flags: tuple[FlagFix, ...] = ()
    edit: Edit | None = None
    repeated: bool = False


@dataclass(frozen=True)
class CulpritContext:
    """What is known beside the records of two runs: the lines that introduce randomness, the code, the fixes."""

    sources: Sequence[Source]
    code: UserCode
    fixes: Remedies

    def suspects(self, source: Source | None = None) -> tuple[Source, ...]:
        """Return the other lines that may differ."""
        return tuple(one for one in self.sources if one is not source)[:MOST_SUSPECTS]

    def at(self, file: str, line: int) -> Source | None:
        """Return what a line is known to do, None if that is nothing."""
        return next((one for one in self.sources if (one.file, one.line) == (file, line)), None)

    def run_elsewhere(self, file: str, line: int) -> Source | None:
        """Return what is known of the functions that a line gives to another, as to the processes of a pool."""
        lines = self.code.handed_over(file, line)
        observed = (one for one in self.sources if one.file == file and not one.suspect)
        return next((one for one in observed if any(one.line in these for these in lines)), None)


def blame_source(source: Source, code: UserCode, fixes: Remedies, sets: Sequence[str] = ()) -> Attribution:
    """Return the answer for a line that is known to introduce a difference; ``sets`` are variables that are sets."""
    known = code.classified(source)
    cause = _SOURCE_CAUSES[known.kind]
    edit = code.edit(known.file, known.line, known.kind, known.takes, sets)
    repeated = edit is None and code.is_repeated(known.file, known.line, known.kind)
    return Attribution(known.file, known.line, known, cause, fixes.flags(cause, known), edit, repeated)


def choose(sources: Sequence[Source], *, orders_only: bool, near: Iterable[tuple[str, int]] = ()) -> Source | None:
    """Return the line among ``sources`` that explains a difference best, None if there is none.

    ``near`` are lines at which a variable was observed to differ. If the runs only took existing values in a different
    order, a line that introduces values is not the culprit, unless there is no other.
    """
    places = set(near)
    fitting = [source for source in sources if not orders_only or source.kind in ORDERS] or list(sources)
    # A seed that is passed may follow from a different order.
    fitting.sort(key=lambda source: source.kind is SourceKind.SEED)
    met = [source for source in fitting if (source.file, source.line) in places]
    return next(iter([*met, *fitting]), None)


# Where a number that an operation was given was made: in which variable it was, and which line introduced it.


_TOLERANCE = 1e-6
"""A variable is a float64, an argument may be the same number as a float32."""

_NO_NUMBERS = (SourceKind.UNINITIALIZED, SourceKind.RACING_OPERATION, SourceKind.UNORDERED_OPERATION)
"""What lines do to tensors only."""


def argument(finding: OpFinding) -> Argument | None:
    """Return the number that differs, None if the first difference is none."""
    if not finding.argument or finding.a is None or finding.b is None:
        return None
    a, b = (op.scalars[finding.argument] for op in (finding.a, finding.b))
    return Argument(name=finding.argument, values=(a, b))


def variable_of(finding: OpFinding, differing: Iterable[Differing]) -> Differing | None:
    """Return the first variable that has in both runs the number that differs, or its negative; None if none has."""
    numbers = argument(finding)
    for one in differing if numbers is not None else ():
        texts = [side.text if side else "" for side in (one.a, one.b)]
        if numbers is not None and all(_same(x, y) for x, y in zip(numbers.values, texts, strict=True)):
            return one
    return None


def _same(a: str, b: str) -> bool:
    try:
        return a == b or math.isclose(abs(float(a)), abs(float(b)), rel_tol=_TOLERANCE)
    except ValueError:
        return False


def source_of_number(finding: OpFinding, near: Sequence[tuple[str, int]], known: CulpritContext) -> Source | None:
    """Return the line that introduces randomness, or a value of the system, into a number that differs.

    It is the nearest from the lines ``near`` on, which assigned the number, or else from the operation on.
    """
    for file, line in (*near, (known.code.display(finding.op.file), finding.op.line)):
        for origin in known.code.origins(file, line):
            source = _source(file, origin, known)
            if source is None and (file, line) in near and origin.line <= line <= origin.last:
                source = known.code.suspect(file, origin)
            if source is not None:
                return source
    return None


def _source(file: str, origin: Origin, known: CulpritContext) -> Source | None:
    sources = [one for one in known.sources if one.kind not in _NO_NUMBERS]
    for one in sources:
        if one.file == file and origin.line <= one.line <= origin.last:
            return one
    for one in sources:
        if any(_draws(one, call) for call in origin.calls):
            return one
    name = origin.system_value
    return Source(file=file, line=origin.line, kind=SourceKind.SYSTEM_VALUE, call=name) if name else None


def _draws(source: Source, call: str) -> bool:
    """Whether a call draws from a global generator that a line seeded, or left without a seed."""
    seeded = source.call.removesuffix(".seed")
    modules = source.generators or ((seeded,) if seeded != source.call else ())
    module, _, name = call.rpartition(".")
    # A class, or default_rng, makes a generator of its own.
    own = name[:1].isupper() or name == "default_rng"
    return source.kind in {*SEEDING, SourceKind.UNSEEDED} and module in modules and not own


# From the first operation, or variable, that differs to the culprit: the line, its cause, and what fixes it.


_CAUSES = {
    How.OUTPUT: Cause.KERNEL,
    How.RNG_STATE: Cause.SEED,
    How.UNINITIALIZED: Cause.MEMORY,
    How.REORDERED: Cause.ORDER,
    How.INPUT: Cause.DATA,
    How.ARGUMENT: Cause.DATA,
    How.CONCURRENT_WRITE: Cause.THREADS,
    How.CONTROL_FLOW: Cause.ORDER,
}
_BEFORE_THE_FRAMEWORK = (How.RNG_STATE, How.REORDERED, How.INPUT, How.CONTROL_FLOW)
"""If a line of Python that runs before an operation introduced it, if one is known."""

_NO_FLAG = (How.CONCURRENT_WRITE, How.CONTROL_FLOW)
"""What no flag fixes: only the program can wait for another thread, or take the same path."""


def of_operation(
    finding: OpFinding,
    differs: Difference,
    known: CulpritContext,
    *,
    near: Sequence[tuple[str, int]] = (),
    tensor: TensorPair | None = None,
) -> Culprit:
    """Return the culprit behind the first difference between the operations of two runs."""
    op = finding.op
    source = source_of(finding, known, near)
    of_optimizer = finding.how is How.ARGUMENT and differs.stage is Stage.HYPERPARAMETERS
    if of_optimizer and source is None:
        source = next((one for one in known.sources if one.kind is SourceKind.HYPERPARAMETER), None)
    blamed = blame_source(source, known.code, known.fixes) if source else _blame_operation(finding, known)
    if of_optimizer and source is None:
        blamed = dataclasses.replace(blamed, cause=Cause.HYPERPARAMETER)
    if finding.how in _NO_FLAG:
        blamed = dataclasses.replace(blamed, flags=())
    return Culprit(
        how=How.INPUT if finding.brought else finding.how,
        cause=blamed.cause,
        rank=differs.rank,
        step=differs.step if differs.stage is Stage.INIT and not op.backward else op.step or differs.step,
        stage=Stage.BACKWARD if op.backward else differs.stage,
        file=blamed.file or None,
        line=blamed.line or None,
        code=known.code.text(blamed.file, blamed.line),
        source=blamed.source,
        operation=_operation(finding, blamed, known.code, tensor),
        thread=_elsewhere(op.thread),
        values=_paths(finding, known.code) if finding.how is How.CONTROL_FLOW else None,
        flags=blamed.flags,
        suggested_edit=blamed.edit,
        repeated=blamed.repeated,
        suspects=known.suspects(source),
    )


def _blame_operation(finding: OpFinding, known: CulpritContext) -> Attribution:
    """Return the answer if no line is known that introduced what an operation was given."""
    own, code = _own(finding), known.code
    file, cause = code.display(own.file), _cause(finding)
    varied = known.fixes.varied
    if finding.how is How.OUTPUT and varied is not None:  # kernels may depend on what varies, as on the threads
        return Attribution(file, own.line, None, varied.cause, known.fixes.pinning(varied))
    if finding.how is How.ARGUMENT:
        return Attribution(file, own.line, None, cause)
    if finding.how is not How.UNINITIALIZED:
        return Attribution(file, own.line, None, cause, known.fixes.flags(cause, None, _kernel(finding)))
    source = Source(file=file, line=own.line, kind=SourceKind.UNINITIALIZED, call="torch.empty")
    edit = code.edit(file, own.line, SourceKind.UNINITIALIZED)
    return Attribution(file, own.line, None, cause, known.fixes.flags(cause, source), edit)


def _kernel(finding: OpFinding) -> str:
    """Return the operation if its results differ although its inputs match, else ``""``."""
    return finding.op.op if finding.how is How.OUTPUT else ""


def _operation(finding: OpFinding, blamed: Attribution, code: UserCode, tensor: TensorPair | None) -> Operation:
    op, file = finding.op, code.display(finding.op.file)
    own = location_of(file, op.line) if op.file and (file, op.line) != (blamed.file, blamed.line) else None
    return Operation(
        name=op.op,
        graph_node=op.node or None,
        module=op.module or None,
        backward=op.backward,
        collective=finding.how is How.OUTPUT and op.is_collective,
        op_location=own,
        inputs_equal=finding.how in (How.OUTPUT, How.RNG_STATE) and not finding.brought,
        argument=argument(finding),
        tensor=tensor,
        inputs=operations.operands(finding.a, finding.b, "ins"),
        outputs=operations.operands(finding.a, finding.b, "outs"),
    )


def of_pipeline(made: Culprit, lines: Sequence[Source], op: str, known: CulpritContext) -> Culprit:
    """Return the culprit of data from a pipeline: the first of its lines, by ``op``, that may race."""
    first, operation = lines[0], made.operation
    location = location_of(made.file, made.line) if made.file else None
    return structs.replace(
        made,
        file=first.file,
        line=first.line,
        code=known.code.text(first.file, first.line),
        source=first,
        operation=structs.replace(operation, op_location=location) if operation else None,
        flags=known.fixes.flags(made.cause, first, op),
        suspects=(*lines[1:], *made.suspects)[:MOST_SUSPECTS],
    )


def of_source(source: Source, differs: Difference, known: CulpritContext, sets: Sequence[str] = ()) -> Culprit:
    """Return the culprit if a line is known that introduces randomness, and no operation differed before."""
    blamed = blame_source(source, known.code, known.fixes, sets)
    made = _of_line(blamed.file, blamed.line, How.SOURCE, blamed.cause, differs, known, source)
    return structs.replace(
        made, source=blamed.source, flags=blamed.flags, suggested_edit=blamed.edit, repeated=blamed.repeated
    )


def after_trials(made: Culprit) -> Culprit:
    """Return a culprit whose flags were tried: hashes that differ without a salt are of objects, by their addresses."""
    trials = [flag.trial for flag in made.flags if flag.trial is not None and not flag.trial.failed]
    salted = not trials or any(one.helps(made.step, made.stage) for one in trials)
    alone = made.source is not None and made.source.kind is SourceKind.HASH and not made.suspects
    return structs.replace(made, cause=Cause.ADDRESS) if alone and not salted else made


def of_variable(
    first: Differing, differs: Difference, known: CulpritContext, sets: Sequence[Differing] = ()
) -> Culprit:
    """Return the culprit behind the first variable that differs; ``sets`` have the same elements in another order."""
    one = first.one
    file = known.code.display(one.file)
    source = known.at(file, one.line) or known.run_elsewhere(file, one.line)
    names = tuple(dict.fromkeys(each.one.name for each in sets))
    if source is None and names and known.code.edit(file, one.line, SourceKind.SET_ORDER, sets=names) is not None:
        source = Source(file=file, line=one.line, kind=SourceKind.SET_ORDER)
    if source is not None:
        return of_source(source, differs, known, names)
    texts = tuple(side.text if side else "" for side in (first.a, first.b))
    cause = Cause.ORDER if first.reordered else Cause.DATA
    made = _of_line(file, one.line, How.VARIABLE, cause, differs, known)
    return structs.replace(made, name=one.name, values=(texts[0], texts[1]) if all(texts) else None)


def of_fork(fork: Fork, differs: Difference, known: CulpritContext) -> Culprit:
    """Return the culprit of two runs that took different code paths."""
    path, line = fork.last or ("", 0)
    file, thread = known.code.display(path), _elsewhere(fork.thread)
    source = known.at(file, line)
    blamed = blame_source(source, known.code, known.fixes) if source else None
    cause = Cause.THREADS if thread else Cause.ORDER
    went = tuple(f"line {position[1]}" if position else "the end" for position in (fork.a, fork.b))
    made = _of_line(file, line, How.CONTROL_FLOW, cause, differs, known, source)
    return structs.replace(
        made,
        source=blamed.source if blamed else None,
        suggested_edit=blamed.edit if blamed else None,
        repeated=blamed.repeated if blamed else False,
        values=(went[0], went[1]),
        thread=thread,
    )


def of_leftover(path: str, file: str, line: int, differs: Difference, known: CulpritContext) -> Culprit:
    """Return the culprit that reads a file which an earlier run wrote."""
    made = _of_line(known.code.display(file), line, How.LEFTOVER_FILE, Cause.DATA, differs, known)
    return structs.replace(made, name=path)


def _of_line(
    file: str,
    line: int,
    how: How,
    cause: Cause,
    differs: Difference,
    known: CulpritContext,
    source: Source | None = None,
) -> Culprit:
    return Culprit(
        how=how,
        cause=cause,
        rank=differs.rank,
        step=differs.step,
        stage=differs.stage,
        file=file,
        line=line,
        code=known.code.text(file, line),
        suspects=known.suspects(source),
    )


def _own(finding: OpFinding) -> OpLine:
    """Return the operation to blame: who took uninitialized memory, or who writes to memory that others do."""
    blamed = (How.UNINITIALIZED, How.CONCURRENT_WRITE)
    if finding.how in blamed and finding.before is not None and finding.before.file:
        return finding.before
    if finding.how is How.CONTROL_FLOW and finding.before is not None and not finding.op.file:
        return finding.before
    return finding.op


def source_of(finding: OpFinding, known: CulpritContext, near: Sequence[tuple[str, int]] = ()) -> Source | None:
    """Return the line that introduced what an operation was given; None if none is known, or it is itself to blame.

    ``near`` are lines at which a variable was observed to differ: for a number, that of the variable that has it.
    """
    if finding.how is How.ARGUMENT:
        return source_of_number(finding, near, known)
    fit = fitting(finding, known.sources)
    if finding.how is How.RNG_STATE:
        return next(iter(fit), None)
    return choose(fit, orders_only=finding.how in (How.REORDERED, How.CONTROL_FLOW), near=near)


def fitting(finding: OpFinding, sources: Sequence[Source]) -> tuple[Source, ...]:
    """Return the lines that may have introduced what an operation was given."""
    if finding.how not in _BEFORE_THE_FRAMEWORK:
        return ()
    random = finding.how is How.RNG_STATE
    return tuple(one for one in sources if _is_of_framework(one, finding.op) == random)


def _is_of_framework(source: Source, op: OpLine) -> bool:
    """Whether a line calls a generator, or other memory, of the framework that the operation belongs to."""
    if source.kind in COMPLETION or source.kind is SourceKind.LISTING_ORDER:
        return False
    if op.op.startswith("aten."):
        return source.call.startswith("torch.") or source.call == "Generator.seed"
    return any(name in source.call for name in ("tensorflow.", "keras."))


def _cause(finding: OpFinding) -> Cause:
    if finding.brought:
        return Cause.DATA
    if finding.how in (How.REORDERED, How.CONTROL_FLOW) and finding.op.thread != wire.MAIN_THREAD:
        return Cause.THREADS
    return _CAUSES[finding.how]


def _elsewhere(thread: str) -> str | None:
    return thread if thread != wire.MAIN_THREAD else None


def _paths(finding: OpFinding, code: UserCode) -> tuple[str, str]:
    ours, theirs = (
        f"{op.op} at {location_of(code.display(op.file), op.line)}" if op else "ended" for op in (finding.a, finding.b)
    )
    return ours, theirs


# What happened before the framework: which code path a run took, and which variable differed first.


_MOST_NEAR = 200
"""Variables that differ, of which the lines are remembered."""


def known_source(finding: OpFinding | None, differs: Difference, known: CulpritContext) -> Source | None:
    """Return the line that needs no further evidence: no operation was recorded, and one is known."""
    several = differs.output is not None and len(known.sources) > 1
    if finding is not None or differs.stage is Stage.STEPS or several:
        return None
    return next(iter(known.sources), None)


def window_of(finding: OpFinding | None, differs: Difference, known: CulpritContext, window: Window) -> Window | None:
    """Return the steps whose lines must be recorded, None if ``finding`` explains enough without.

    They are needed if the runs took different code paths, and if no line explains what came in, or several might.
    """
    forked = _forked(finding, differs)
    if not forked and finding is not None and finding.how not in (How.INPUT, How.REORDERED, How.ARGUMENT):
        return None
    if not forked and finding is not None and len(fitting(finding, known.sources)) == 1:
        return None
    return EVERY_STEP if differs.stage is Stage.STEPS else Window(0, window.last)


def explain(pair: RunPair, finding: OpFinding | None, differs: Difference, known: CulpritContext) -> Culprit | None:
    """Return the culprit that two runs with recorded lines show, None if they show none."""
    if _forked(finding, differs):
        fork = lines.fork(*_streams(pair))
        if fork is not None and fork.last is not None:
            return of_fork(fork, pair.differs, known)
    near = _differing(pair)
    if differs.output is not None:
        near = [one for one in near if not _names_runs(one)] or near
    if finding is not None and finding.how is How.ARGUMENT:
        return _of_number(finding, near, differs, known)
    if finding is not None and fitting(finding, known.sources):
        places = [(known.code.display(one.one.file), one.one.line) for one in near]
        return of_operation(finding, differs, known, near=places)
    sets = [one for one in near if one.is_set]
    near = [one for one in near if not one.is_set] or near  # their order matters where a line takes the elements
    if not near:
        return None
    digests = _digests(finding)
    # The first variable with exactly what came in; if there is none, the first that differs at all.
    first = next((one for one in near if digests and digests == _values(one)), near[0])
    return of_variable(first, pair.differs, known, sets)


def _of_number(
    finding: OpFinding, near: Sequence[lines.Differing], differs: Difference, known: CulpritContext
) -> Culprit:
    """Return the line that introduced a number, else the variable that has it, else the operation that was given it.

    These runs may have drawn other numbers than those of the operation: then it is the first variable that differs at
    a line which is known to draw.
    """
    first = variable_of(finding, near)
    places = [(known.code.display(first.one.file), first.one.line)] if first else []
    made = of_operation(finding, differs, known, near=places)
    if made.source is None and first is None:
        first = next((one for one in near if _at(one, known) is not None), None)
    if first is None or made.source is not None or made.operation is None:
        return made
    operation = structs.replace(made.operation, op_location=location_of(made.file, made.line) if made.file else None)
    return structs.replace(of_variable(first, differs, known), operation=operation)


def _at(one: lines.Differing, known: CulpritContext) -> Source | None:
    source = known.at(known.code.display(one.one.file), one.one.line)
    return None if source is None or source.kind in (*_NO_NUMBERS, SourceKind.HYPERPARAMETER) else source


def leftover_reader(pair: RunPair, files: Sequence[str], differs: Difference, known: CulpritContext) -> Culprit | None:
    """Return the line that reads one of the files that an earlier run wrote, None if none was recorded."""
    reads = [line for stream in _streams(pair) for line in stream if isinstance(line, lines.Opened)]
    opened = next((read for read in reads if read.path in files), None)
    return of_leftover(opened.path, opened.file, opened.line, differs, known) if opened else None


def _forked(finding: OpFinding | None, differs: Difference) -> bool:
    return differs.stage is Stage.STEPS or (finding is not None and finding.how is How.CONTROL_FLOW)


def _streams(pair: RunPair) -> tuple[Iterator[Line], Iterator[Line]]:
    a, b = pair.paths()
    return (lines.watched(a) if a else iter(())), (lines.watched(b) if b else iter(()))


def _differing(pair: RunPair) -> list[lines.Differing]:
    variables = []
    for one in lines.assignments(*_streams(pair)):
        variables.append(one)
        if len(variables) == _MOST_NEAR:
            break
    return sorted(variables, key=lambda one: one.order)


def _names_runs(one: lines.Differing) -> bool:
    """Return whether a variable has what its run is called, which may differ: a UUID."""
    return all(side and names_a_run(side.name, side.text.strip("'\"")) for side in (one.a, one.b))


def _digests(finding: OpFinding | None) -> tuple[str, str] | None:
    """Return the digests of the input that differs, None if there is none."""
    if (
        finding is None
        or finding.a is None
        or finding.b is None
        or finding.how is How.CONTROL_FLOW
        or not finding.a.ins
    ):
        return None
    a, b = (op.ins[finding.index][0].rpartition(":")[2] for op in (finding.a, finding.b))
    return a, b


def _values(one: lines.Differing) -> tuple[str, str]:
    a, b = (side.digest.rpartition(":")[2] if side else "" for side in (one.a, one.b))
    return a, b


# Lines of the user's code that run an operation which may race, whether or not it was observed to.


_MOST = 10


def suspects(ops: Iterable[OpLine], code: UserCode, device: str) -> tuple[Source, ...]:
    """Return each line once, with the operation that makes it a suspect; ``device`` is where the weights live."""
    by_position: dict[tuple[str, int], Source] = {}
    for op in ops:
        position = code.display(op.file), op.line
        if op.file and position not in by_position and (suspect := _suspect(op, position, device)) is not None:
            by_position[position] = suspect
    return tuple(by_position.values())[:_MOST]


def _suspect(op: OpLine, position: tuple[str, int], device: str) -> Source | None:
    row = known(op.op, "torch" if op.op.startswith("aten.") else "tensorflow", device)
    if row is None and not op.listed:
        return None
    return Source(
        file=position[0],
        line=position[1],
        kind=SourceKind.RACING_OPERATION if row is not None else SourceKind.UNORDERED_OPERATION,
        call=op.op,
        suspect=True,
        condition=row.when if row is not None else "",
    )


# Search for the culprit in instrumented runs: in the user's code, among the operations, between modules or stages.


class CulpritSearch:
    """Starts the instrumented runs that a search needs; ``dump`` is where to save the differing tensor, if anywhere."""

    def __init__(self, instrumented: InstrumentedRuns, known: CulpritContext, dump: Path | None) -> None:
        self._instrumented, self._known, self._dump = instrumented, known, dump

    def leftover_reader(self, files: Sequence[str], differs: Difference) -> Culprit | None:
        """Return the line at which a run read one of the ``files`` that an earlier one wrote, None if none did.

        These runs go as far as those without instrumentation: one that is ended earlier may leave nothing to the next.
        """
        pair = self._instrumented.pair("lines", self._instrumented.every_step) if files else None
        return leftover_reader(pair, files, differs, self._known) if pair else None

    def in_python(self, finding: OpFinding | None, differs: Difference, window: Window) -> Culprit | None:
        """Return the culprit if it lies before the framework, None if ``finding`` explains enough or more."""
        source = known_source(finding, differs, self._known)
        if source is not None:
            return of_source(source, differs, self._known)
        steps = window_of(finding, differs, self._known, window)
        pair = self._instrumented.pair("lines", steps) if steps else None
        return explain(pair, finding, differs, self._known) if pair else None

    def named(self, finding: OpFinding | None, pair: RunPair, window: Window) -> Culprit | None:
        """Return the culprit behind the first operation that differs, None if neither it nor a line is known."""
        in_python = self.in_python(finding, pair.differs, window)
        if in_python is not None or finding is None:
            return in_python
        wants = finding.how is How.OUTPUT and (finding.nth is not None or finding.op.key)
        tensor = self._tensor(finding, pair, window) if wants else None
        made = of_operation(finding, pair.differs, self._known, tensor=tensor)
        if not finding.brought:
            return made
        listed = [op for op in self._instrumented.operations("ops") if op.listed and op.file]
        lines = suspects(listed, self._known.code, self._device)
        return of_pipeline(made, lines, listed[0].op, self._known) if lines else made

    def among_racing(self) -> Culprit | None:
        """Record only operations that are known to race, at every step: that hides less, and finds what is rare."""
        pair = self._instrumented.pair("racing", self._instrumented.every_step)
        finding = pair.first_operation() if pair else None
        if pair is None or finding is None or finding.how not in (How.OUTPUT, How.RNG_STATE):
            return None
        return of_operation(finding, pair.differs, self._known)

    def narrowed(self, window: Window, group: Group) -> Narrowed | None:
        """Return the best answer of coarser levels if no operation differs: between two modules, else two stages."""
        pair = self._instrumented.pair("modules", window)
        ops = (op for level in ("ops", "modules") for op in self._instrumented.operations(level))
        may_race = suspects(ops, self._known.code, self._device)
        finding = pair.first_operation() if pair else None
        if pair is not None and finding is not None:
            return between_modules(finding, pair, may_race)
        first = group.first_difference
        return between_stages(first, group.stages, may_race) if first is not None else None

    @property
    def _device(self) -> str:
        return next(iter(self._known.fixes.devices), "cpu")

    def _tensor(self, finding: OpFinding, pair: RunPair, window: Window) -> TensorPair | None:
        role = f"out{finding.index}"
        return self._instrumented.tensors(window, finding.op, finding.nth, role, pair.differs.rank, self._dump)
