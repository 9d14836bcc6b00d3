"""What happened before the framework: which code path a run took, and which variable differed first."""

from collections.abc import Iterator, Sequence

from msgspec import structs

from detaudit.auditor.evidence.event_records import Line
from detaudit.auditor.trace import culprit, line_diff, line_records, numbers
from detaudit.auditor.trace.culprit_line import Known
from detaudit.auditor.trace.instrumented import EVERY_STEP, RunPair, Window
from detaudit.auditor.trace.op_diff import OpFinding
from detaudit.model import Culprit, Difference, How, Source, Stage

_MOST_NEAR = 200
"""Variables that differ, of which the lines are remembered."""


def known_source(found: OpFinding | None, differs: Difference, known: Known) -> Source | None:
    """Return the line that needs no further evidence: no operation was recorded, and one is known."""
    several = differs.output is not None and len(known.sources) > 1
    if found is not None or differs.stage is Stage.STEPS or several:
        return None
    return next(iter(known.sources), None)


def window_of(found: OpFinding | None, differs: Difference, known: Known, window: Window) -> Window | None:
    """Return the steps whose lines must be recorded, None if ``found`` explains enough without.

    They are needed if the runs took different code paths, and if no line explains what came in, or several might.
    """
    forked = _forked(found, differs)
    if not forked and found is not None and found.how not in (How.INPUT, How.REORDERED, How.ARGUMENT):
        return None
    if not forked and found is not None and len(culprit.fitting(found, known.sources)) == 1:
        return None
    return EVERY_STEP if differs.stage is Stage.STEPS else Window(0, window.last)


def explain(pair: RunPair, found: OpFinding | None, differs: Difference, known: Known) -> Culprit | None:
    """Return the culprit that two runs with recorded lines show, None if they show none."""
    if _forked(found, differs):
        fork = line_diff.fork(*_streams(pair))
        if fork is not None and fork.last is not None:
            return culprit.of_fork(fork, pair.differs, known)
    near = _differing(pair)
    if found is not None and found.how is How.ARGUMENT:
        return _of_number(found, near, differs, known)
    if found is not None and culprit.fitting(found, known.sources):
        places = [(known.code.display(one.one.file), one.one.line) for one in near]
        return culprit.of_operation(found, differs, known, near=places)
    if not near:
        return None
    digests = _digests(found)
    # The first variable with exactly what came in; if there is none, the first that differs at all.
    first = next((one for one in near if digests and digests == _values(one)), near[0])
    return culprit.of_variable(first, pair.differs, known)


def _of_number(found: OpFinding, near: Sequence[line_diff.Differing], differs: Difference, known: Known) -> Culprit:
    """Return the line that introduced a number, else the variable that has it, else the operation that was given it."""
    first = numbers.variable_of(found, near)
    places = [(known.code.display(first.one.file), first.one.line)] if first else []
    made = culprit.of_operation(found, differs, known, near=places)
    if first is None or made.source is not None or made.operation is None:
        return made
    operation = structs.replace(made.operation, op_location=f"{made.file}:{made.line}" if made.file else None)
    return structs.replace(culprit.of_variable(first, differs, known), operation=operation)


def leftover_reader(pair: RunPair, files: Sequence[str], differs: Difference, known: Known) -> Culprit | None:
    """Return the line that reads one of the files that an earlier run wrote, None if none was recorded."""
    reads = [line for stream in _streams(pair) for line in stream if isinstance(line, line_records.Opened)]
    found = next((read for read in reads if read.path in files), None)
    return culprit.of_leftover(found.path, found.file, found.line, differs, known) if found else None


def _forked(found: OpFinding | None, differs: Difference) -> bool:
    return differs.stage is Stage.STEPS or (found is not None and found.how is How.CONTROL_FLOW)


def _streams(pair: RunPair) -> tuple[Iterator[Line], Iterator[Line]]:
    a, b = pair.paths()
    return (line_records.watched(a) if a else iter(())), (line_records.watched(b) if b else iter(()))


def _differing(pair: RunPair) -> list[line_diff.Differing]:
    found = []
    for one in line_diff.assignments(*_streams(pair)):
        found.append(one)
        if len(found) == _MOST_NEAR:
            break
    return sorted(found, key=lambda one: one.order)


def _digests(found: OpFinding | None) -> tuple[str, str] | None:
    """Return the digests of the input that differs, None if there is none."""
    if found is None or found.a is None or found.b is None or found.how is How.CONTROL_FLOW or not found.a.ins:
        return None
    a, b = (op.ins[found.place][0].rpartition(":")[2] for op in (found.a, found.b))
    return a, b


def _values(one: line_diff.Differing) -> tuple[str, str]:
    a, b = (side.digest.rpartition(":")[2] if side else "" for side in (one.a, one.b))
    return a, b
