"""From the first operation that differs to the line of the user's code to blame, the cause, and what mends it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from detaudit import wire
from detaudit.auditor.evidence.event_logs import told_from
from detaudit.auditor.source.suspect_code import SET_OF_OBJECTS, SET_WORDS
from detaudit.auditor.trace import culprit_line
from detaudit.auditor.trace.op_diff import Finding, Kind
from detaudit.auditor.trace.op_records import OpLine
from detaudit.model import CauseClass, Culprit, Difference, Edit, FlagCure, Source, Stage, TensorPair
from detaudit.recipe.fix_flags import cures
from detaudit.recipe.flags import Catalogue, Cause

_CAUSES: dict[Kind, CauseClass] = {
    Kind.OUTPUT: "kernel",
    Kind.RANDOM: "seed",
    Kind.FRESH: "memory",
    Kind.OTHER_TENSOR: "order",
    Kind.OUTSIDE: "data",
    Kind.WRITTEN_BETWEEN: "threads",
    Kind.FORK: "order",
}
_BEFORE_THE_FRAMEWORK = (Kind.RANDOM, Kind.OTHER_TENSOR, Kind.OUTSIDE, Kind.FORK)
"""Where a line of Python that runs before an operation is to blame, if one is known."""

_WORDS = {
    Kind.FRESH: "calls torch.empty() or the like, which holds what was in memory until it is written",
    Kind.WRITTEN_BETWEEN: "writes to memory to which another thread or process writes as well, in no fixed order",
}
_NO_FLAG = ("written-between", "fork")
"""What no flag mends: only the program can wait for another thread, or go the same way."""


@dataclass(frozen=True)
class Scene:
    """What is known besides: the lines that bring randomness, where the user's files are, the versions and devices."""

    sources: Sequence[Source]
    cwd: Path
    root: Path
    catalogue: Catalogue
    frameworks: Mapping[str, str]
    devices: Sequence[str]
    near: Sequence[tuple[str, int]] = ()

    def told(self, file: str) -> str:
        """Return a file as people would name it."""
        return told_from(file, self.cwd)


def of_operation(found: Finding, differs: Difference, scene: Scene, tensor: TensorPair | None = None) -> Culprit:
    """Return the culprit that the first difference between two streams of operations points to."""
    op = found.op
    own = _blamed(found)
    source = source_of(found, scene)
    cause = _cause(found, source, scene)
    file, line = (source.file, source.line) if source else (scene.told(own.file), own.line)
    words = source.what if source else _WORDS.get(found.kind, "")
    if found.kind is Kind.OUTPUT and op.op.startswith("c10d."):
        words = "a collective, whose result depends on what other ranks sent as well"
    edit = culprit_line.edit_of(source, scene.root) if source else None
    if found.kind is Kind.FRESH:
        edit = culprit_line.edit_at(scene.root, file, line, "memory")
    at = f"{scene.told(op.file)}:{op.line}" if op.file and (scene.told(op.file), op.line) != (file, line) else None
    culprit = Culprit(
        how=Kind.OUTSIDE.value if found.brought else found.kind.value,
        cause=cause,
        rank=differs.rank,
        step=differs.step if differs.stage is Stage.INIT and not op.backward else op.step or differs.step,
        stage=Stage.BACKWARD if op.backward else differs.stage,
        file=file or None,
        line=line or None,
        words=words,
        op=op.op,
        node=op.node or None,
        module=op.module or None,
        backward=op.backward,
        thread=op.thread if op.thread != wire.MAIN_THREAD else None,
        at=at,
        inputs_equal=found.kind in (Kind.OUTPUT, Kind.RANDOM) and not found.brought,
        values=_ways(found, scene) if found.kind is Kind.FORK else None,
        tensor=tensor,
        edit=edit,
        also=tuple(one for one in scene.sources if one is not source)[:5],
    )
    return _with_cures(culprit, scene, op.op if found.kind is Kind.OUTPUT else "")


def of_pipeline(made: Culprit, sources: Sequence[Source], op: str, scene: Scene) -> Culprit:
    """Return the culprit of data that came out of a pipeline: the first of its lines that may race, by ``op``."""
    first = sources[0]
    at = f"{made.file}:{made.line}" if made.file else None
    also = (*sources[1:], *made.also)[:5]
    made = msgspec.structs.replace(made, file=first.file, line=first.line, words=first.what, at=at, also=also)
    return _with_cures(made, scene, op)


def of_source(source: Source, differs: Difference, scene: Scene) -> Culprit:
    """Return the culprit where a line is known that brings randomness, and no operation was seen to differ."""
    culprit = Culprit(
        how="source",
        cause=culprit_line.cause_of(source, scene.root),
        rank=differs.rank,
        step=differs.step,
        stage=differs.stage,
        file=source.file,
        line=source.line,
        words=source.what,
        edit=culprit_line.edit_of(source, scene.root),
        also=tuple(one for one in scene.sources if one is not source)[:5],
    )
    return _with_cures(culprit, scene, "")


def of_line(file: str, line: int, differs: Difference, scene: Scene) -> Culprit:
    """Return a culprit of which no more is known than its line."""
    made = Culprit(
        how="value",
        cause="data",
        rank=differs.rank,
        step=differs.step,
        stage=differs.stage,
        file=file,
        line=line,
        also=tuple(scene.sources)[:5],
    )
    return msgspec.structs.replace(made, code=_code(scene.root, file, line))


def with_values(made: Culprit, how: str, words: str, values: tuple[str, str] | None) -> Culprit:
    """Return the culprit of a variable that differs."""
    return msgspec.structs.replace(made, cause="order" if how == "order" else "data", words=words, values=values)


def with_fork(made: Culprit, words: str, ways: tuple[str, str], edit: Edit | None, thread: str) -> Culprit:
    """Return the culprit of programs that went different ways."""
    elsewhere = thread if thread != wire.MAIN_THREAD else None
    cause: CauseClass = "threads" if elsewhere else "order"
    return msgspec.structs.replace(made, how="fork", cause=cause, words=words, values=ways, edit=edit, thread=elsewhere)


def _with_cures(culprit: Culprit, scene: Scene, op: str) -> Culprit:
    cause: Cause = "order" if culprit.cause == "address" else culprit.cause
    if culprit.cause == "address" and culprit.words == SET_WORDS:
        culprit = msgspec.structs.replace(culprit, words=SET_OF_OBJECTS)
    flags = () if culprit.how in _NO_FLAG else tuple(scene.catalogue)
    found = cures(flags, cause, scene.frameworks, scene.devices, culprit.words, op)
    told = tuple(FlagCure(flag=one.id, title=one.title, in_script=one.in_script, where=one.where) for one in found)
    code = _code(scene.root, culprit.file, culprit.line)
    return msgspec.structs.replace(culprit, cures=told, code=code)


def _code(root: Path, file: str | None, line: int | None) -> str:
    """Return a line of the user's code, ``""`` where it cannot be read."""
    if not file or not line:
        return ""
    try:
        lines = (root / file).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return lines[line - 1].strip() if line <= len(lines) else ""


def _blamed(found: Finding) -> OpLine:
    """Return the operation whose line is to blame: who took fresh memory, or who writes to memory that others do."""
    if found.kind in (Kind.FRESH, Kind.WRITTEN_BETWEEN) and found.before is not None and found.before.file:
        return found.before
    if found.kind is Kind.FORK and found.before is not None and not found.op.file:
        return found.before
    return found.op


def source_of(found: Finding, scene: Scene) -> Source | None:
    """Return the line that brings what an operation was given; None where none is known, or it is itself to blame."""
    fit = fitting(found, scene)
    if found.kind is Kind.RANDOM:
        return next(iter(fit), None)
    orders = found.kind in (Kind.OTHER_TENSOR, Kind.FORK)
    return culprit_line.to_blame(fit, scene.root, orders_only=orders, near=scene.near)


def fitting(found: Finding, scene: Scene) -> tuple[Source, ...]:
    """Return the lines that may bring what an operation was given."""
    if found.kind not in _BEFORE_THE_FRAMEWORK:
        return ()
    random = found.kind is Kind.RANDOM
    return tuple(one for one in scene.sources if _seeds_framework(one, found.op) == random)


def _seeds_framework(source: Source, op: OpLine) -> bool:
    """Whether a line seeds a generator of the framework that the operation belongs to."""
    names = ("torch.", ".seed()") if op.op.startswith("aten.") else ("tensorflow.", "keras.")
    return source.kind not in ("listing-order", "completion-order", "completion-order-option") and any(
        name in source.what for name in names
    )


def _cause(found: Finding, source: Source | None, scene: Scene) -> CauseClass:
    if source is not None:
        return culprit_line.cause_of(source, scene.root)
    op = found.op
    if found.brought:
        return "data"
    if found.kind in (Kind.OTHER_TENSOR, Kind.FORK) and op.thread != wire.MAIN_THREAD:
        return "threads"
    return _CAUSES[found.kind]


def _ways(found: Finding, scene: Scene) -> tuple[str, str]:
    ours, theirs = (f"{op.op} at {scene.told(op.file)}:{op.line}" if op else "ended" for op in (found.a, found.b))
    return ours, theirs
