"""What happened before the framework: which way the program went, and which variable differed first."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from detaudit.auditor.evidence.event_records import Line
from detaudit.auditor.trace import culprit, culprit_line, line_diff, line_records
from detaudit.auditor.trace.instrumented import EVERY_STEP, Pair, Watched, Window
from detaudit.auditor.trace.op_diff import Finding, Kind
from detaudit.model import Culprit, Difference, Stage

_MOST_NEAR = 200
"""Variables that differ, of which the lines are remembered."""


def told(
    watched: Watched, found: Finding | None, differs: Difference, window: Window, scene: culprit.Scene
) -> Culprit | None:
    """Return the culprit where it lies before the framework, None where ``found`` says enough or says more.

    Two runs are watched line by line where the programs went different ways, and where what came in has no line that
    explains it, or several that might.
    """
    forked = differs.stage is Stage.STEPS or (found is not None and found.kind is Kind.FORK)
    if not forked and not _came_in(found):
        return None
    fitting = culprit.fitting(found, scene) if found is not None else scene.sources
    if not forked and found is None and fitting:
        return culprit.of_source(fitting[0], differs, scene)
    if not forked and len(fitting) == 1:
        return None
    steps = EVERY_STEP if differs.stage is Stage.STEPS else Window(0, window.last)
    lines = watched.pair("lines", steps)
    if lines is None:
        return None
    ways = line_diff.fork(*_streams(lines)) if forked else None
    if ways is not None and ways.last is not None:
        return _forked(ways, lines.differs, scene)
    near = _differing(lines)
    if found is not None and fitting:
        return culprit.of_operation(found, differs, replace(scene, near=_places(near, scene)))
    return _first_value(near, lines.differs, scene, found)


def carried(watched: Watched, files: Sequence[str], differs: Difference, scene: culprit.Scene) -> Culprit | None:
    """Return the line that reads one of the files that an earlier run wrote, None where none was seen to.

    The runs are watched to their ends: one that is ended early leaves nothing to the next.
    """
    lines = watched.pair("lines", EVERY_STEP)
    if lines is None:
        return None
    reads = [line for stream in _streams(lines) for line in stream if isinstance(line, line_records.Opened)]
    found = next((read for read in reads if read.path in files), None)
    if found is None:
        return None
    made = culprit.of_line(scene.told(found.file), found.line, differs, scene)
    return culprit.with_values(made, "value", f"reads {found.path}, which an earlier run wrote", None)


def _came_in(found: Finding | None) -> bool:
    return found is None or found.kind in (Kind.OUTSIDE, Kind.OTHER_TENSOR)


def _streams(pair: Pair) -> tuple[Iterator[Line], Iterator[Line]]:
    a, b = pair.paths()
    return (line_records.watched(a) if a else iter(())), (line_records.watched(b) if b else iter(()))


def _differing(pair: Pair) -> list[line_diff.Differing]:
    found = []
    for one in line_diff.assignments(*_streams(pair)):
        found.append(one)
        if len(found) == _MOST_NEAR:
            break
    return sorted(found, key=lambda one: one.order)


def _places(near: list[line_diff.Differing], scene: culprit.Scene) -> tuple[tuple[str, int], ...]:
    return tuple((scene.told(one.one.file), one.one.line) for one in near)


def _first_value(
    near: list[line_diff.Differing], differs: Difference, scene: culprit.Scene, found: Finding | None
) -> Culprit | None:
    """Return the first variable that held what came in; where none did exactly, the first that differed at all."""
    if not near:
        return None
    words = _words(found)
    first = next((one for one in near if words and words == _held(one)), near[0])
    told = first.one
    file = scene.told(told.file)
    source = next((one for one in scene.sources if (one.file, one.line) == (file, told.line)), None)
    if source is not None:
        return culprit.of_source(source, differs, scene)
    made = culprit.of_line(file, told.line, differs, scene)
    texts = tuple(one.text if one else "" for one in (first.a, first.b))
    what = f"{told.name} {'holds the same in another order' if first.how == 'order' else 'has another value'}"
    return culprit.with_values(made, first.how, what, (texts[0], texts[1]) if all(texts) else None)


def _words(found: Finding | None) -> tuple[str, str] | None:
    if found is None or found.a is None or found.b is None or found.kind is Kind.FORK or not found.a.ins:
        return None
    a, b = (op.ins[found.place][0].rpartition(":")[2] for op in (found.a, found.b))
    return a, b


def _held(one: line_diff.Differing) -> tuple[str, str]:
    a, b = (side.digest.rpartition(":")[2] if side else "" for side in (one.a, one.b))
    return a, b


def _forked(ways: line_diff.Fork, differs: Difference, scene: culprit.Scene) -> Culprit:
    file, line = ways.last or ("", 0)
    file = scene.told(file)
    made = culprit.of_line(file, line, differs, scene)
    went = tuple(f"line {place[1]}" if place else "the end" for place in (ways.a, ways.b))
    source = next((one for one in scene.sources if (one.file, one.line) == (file, line)), None)
    words = source.what if source else "the two programs went different ways here"
    edit = culprit_line.edit_of(source, scene.root) if source else None
    return culprit.with_fork(made, words, (went[0], went[1]), edit, ways.thread)
