"""From the first operation, or variable, that differs to the culprit: the line, its cause, and what fixes it."""

import dataclasses
from collections.abc import Sequence

from msgspec import structs

from detaudit import wire
from detaudit.auditor.trace import numbers, op_records
from detaudit.auditor.trace.culprit_line import MOST_SUSPECTS, Blamed, Known, blame_source, choose
from detaudit.auditor.trace.line_diff import Differing, Fork
from detaudit.auditor.trace.op_diff import OpFinding
from detaudit.auditor.trace.op_records import OpLine
from detaudit.auditor.trace.user_code import UserCode
from detaudit.model import (
    COMPLETION,
    Cause,
    Culprit,
    Difference,
    How,
    Operation,
    Source,
    SourceKind,
    Stage,
    TensorPair,
)

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
    found: OpFinding,
    differs: Difference,
    known: Known,
    *,
    near: Sequence[tuple[str, int]] = (),
    tensor: TensorPair | None = None,
) -> Culprit:
    """Return the culprit behind the first difference between the operations of two runs."""
    op = found.op
    source = source_of(found, known, near)
    of_optimizer = found.how is How.ARGUMENT and differs.stage is Stage.HYPERPARAMETERS
    if of_optimizer and source is None:
        source = next((one for one in known.sources if one.kind is SourceKind.HYPERPARAMETER), None)
    blamed = blame_source(source, known.code, known.fixes) if source else _blame_operation(found, known)
    if of_optimizer and source is None:
        blamed = dataclasses.replace(blamed, cause=Cause.HYPERPARAMETER)
    if found.how in _NO_FLAG:
        blamed = dataclasses.replace(blamed, flags=())
    return Culprit(
        how=How.INPUT if found.brought else found.how,
        cause=blamed.cause,
        rank=differs.rank,
        step=differs.step if differs.stage is Stage.INIT and not op.backward else op.step or differs.step,
        stage=Stage.BACKWARD if op.backward else differs.stage,
        file=blamed.file or None,
        line=blamed.line or None,
        code=known.code.text(blamed.file, blamed.line),
        source=blamed.source,
        operation=_operation(found, blamed, known.code, tensor),
        thread=_elsewhere(op.thread),
        values=_paths(found, known.code) if found.how is How.CONTROL_FLOW else None,
        flags=blamed.flags,
        suggested_edit=blamed.edit,
        repeated=blamed.repeated,
        suspects=known.suspects(source),
    )


def _blame_operation(found: OpFinding, known: Known) -> Blamed:
    """Return the answer if no line is known that introduced what an operation was given."""
    own, code = _own(found), known.code
    file, cause = code.display(own.file), _cause(found)
    varied = known.fixes.varied
    if found.how is How.OUTPUT and varied is not None:  # kernels may depend on what varies, as on the threads
        return Blamed(file, own.line, None, varied.cause, known.fixes.pinning(varied))
    if found.how is How.ARGUMENT:
        return Blamed(file, own.line, None, cause)
    if found.how is not How.UNINITIALIZED:
        return Blamed(file, own.line, None, cause, known.fixes.flags(cause, None, _kernel(found)))
    source = Source(file=file, line=own.line, kind=SourceKind.UNINITIALIZED, call="torch.empty")
    edit = code.edit(file, own.line, SourceKind.UNINITIALIZED)
    return Blamed(file, own.line, None, cause, known.fixes.flags(cause, source), edit)


def _kernel(found: OpFinding) -> str:
    """Return the operation if its results differ although its inputs match, else ``""``."""
    return found.op.op if found.how is How.OUTPUT else ""


def _operation(found: OpFinding, blamed: Blamed, code: UserCode, tensor: TensorPair | None) -> Operation:
    op, file = found.op, code.display(found.op.file)
    own = f"{file}:{op.line}" if op.file and (file, op.line) != (blamed.file, blamed.line) else None
    return Operation(
        name=op.op,
        graph_node=op.node or None,
        module=op.module or None,
        backward=op.backward,
        collective=found.how is How.OUTPUT and op.is_collective,
        op_location=own,
        inputs_equal=found.how in (How.OUTPUT, How.RNG_STATE) and not found.brought,
        argument=numbers.argument(found),
        tensor=tensor,
        inputs=op_records.operands(found.a, found.b, "ins"),
        outputs=op_records.operands(found.a, found.b, "outs"),
    )


def of_pipeline(made: Culprit, lines: Sequence[Source], op: str, known: Known) -> Culprit:
    """Return the culprit of data from a pipeline: the first of its lines, by ``op``, that may race."""
    first, operation = lines[0], made.operation
    location = f"{made.file}:{made.line}" if made.file else None
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


def of_source(source: Source, differs: Difference, known: Known) -> Culprit:
    """Return the culprit if a line is known that introduces randomness, and no operation differed before."""
    blamed = blame_source(source, known.code, known.fixes)
    made = _of_line(blamed.file, blamed.line, How.SOURCE, blamed.cause, differs, known, source)
    return structs.replace(
        made, source=blamed.source, flags=blamed.flags, suggested_edit=blamed.edit, repeated=blamed.repeated
    )


def of_variable(first: Differing, differs: Difference, known: Known) -> Culprit:
    """Return the culprit behind the first variable that differs."""
    one = first.one
    file = known.code.display(one.file)
    source = known.at(file, one.line)
    if source is not None:
        return of_source(source, differs, known)
    texts = tuple(side.text if side else "" for side in (first.a, first.b))
    cause = Cause.ORDER if first.reordered else Cause.DATA
    made = _of_line(file, one.line, How.VARIABLE, cause, differs, known)
    return structs.replace(made, name=one.name, values=(texts[0], texts[1]) if all(texts) else None)


def of_fork(fork: Fork, differs: Difference, known: Known) -> Culprit:
    """Return the culprit of two runs that took different code paths."""
    place, line = fork.last or ("", 0)
    file, elsewhere = known.code.display(place), _elsewhere(fork.thread)
    source = known.at(file, line)
    blamed = blame_source(source, known.code, known.fixes) if source else None
    cause = Cause.THREADS if elsewhere else Cause.ORDER
    went = tuple(f"line {place[1]}" if place else "the end" for place in (fork.a, fork.b))
    made = _of_line(file, line, How.CONTROL_FLOW, cause, differs, known, source)
    return structs.replace(
        made,
        source=blamed.source if blamed else None,
        suggested_edit=blamed.edit if blamed else None,
        repeated=blamed.repeated if blamed else False,
        values=(went[0], went[1]),
        thread=elsewhere,
    )


def of_leftover(path: str, file: str, line: int, differs: Difference, known: Known) -> Culprit:
    """Return the culprit that reads a file which an earlier run wrote."""
    made = _of_line(known.code.display(file), line, How.LEFTOVER_FILE, Cause.DATA, differs, known)
    return structs.replace(made, name=path)


def _of_line(
    file: str, line: int, how: How, cause: Cause, differs: Difference, known: Known, source: Source | None = None
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


def _own(found: OpFinding) -> OpLine:
    """Return the operation to blame: who took uninitialized memory, or who writes to memory that others do."""
    blamed = (How.UNINITIALIZED, How.CONCURRENT_WRITE)
    if found.how in blamed and found.before is not None and found.before.file:
        return found.before
    if found.how is How.CONTROL_FLOW and found.before is not None and not found.op.file:
        return found.before
    return found.op


def source_of(found: OpFinding, known: Known, near: Sequence[tuple[str, int]] = ()) -> Source | None:
    """Return the line that introduced what an operation was given; None if none is known, or it is itself to blame.

    ``near`` are lines at which a variable was observed to differ: for a number, that of the variable that has it.
    """
    if found.how is How.ARGUMENT:
        return numbers.source_of(found, near, known)
    fit = fitting(found, known.sources)
    if found.how is How.RNG_STATE:
        return next(iter(fit), None)
    return choose(fit, orders_only=found.how in (How.REORDERED, How.CONTROL_FLOW), near=near)


def fitting(found: OpFinding, sources: Sequence[Source]) -> tuple[Source, ...]:
    """Return the lines that may have introduced what an operation was given."""
    if found.how not in _BEFORE_THE_FRAMEWORK:
        return ()
    random = found.how is How.RNG_STATE
    return tuple(one for one in sources if _is_of_framework(one, found.op) == random)


def _is_of_framework(source: Source, op: OpLine) -> bool:
    """Whether a line calls a generator, or other memory, of the framework that the operation belongs to."""
    if source.kind in COMPLETION or source.kind is SourceKind.LISTING_ORDER:
        return False
    if op.op.startswith("aten."):
        return source.call.startswith("torch.") or source.call == "Generator.seed"
    return any(name in source.call for name in ("tensorflow.", "keras."))


def _cause(found: OpFinding) -> Cause:
    if found.brought:
        return Cause.DATA
    if found.how in (How.REORDERED, How.CONTROL_FLOW) and found.op.thread != wire.MAIN_THREAD:
        return Cause.THREADS
    return _CAUSES[found.how]


def _elsewhere(thread: str) -> str | None:
    return thread if thread != wire.MAIN_THREAD else None


def _paths(found: OpFinding, code: UserCode) -> tuple[str, str]:
    ours, theirs = (f"{op.op} at {code.display(op.file)}:{op.line}" if op else "ended" for op in (found.a, found.b))
    return ours, theirs
