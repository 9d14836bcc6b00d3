"""What may fix a difference: the edit of a line, code that does what a flag does, or else a variable."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from detaudit.config.choice import applicable, is_gpu
from detaudit.config.flags import SEARCHED, SEED, Catalogue, Flag
from detaudit.fix.changes import AFTER_IMPORTS, Change, imported_at_top
from detaudit.fix.tree import Tree
from detaudit.model import Cause, Edit, Source, Trace
from detaudit.source import edits
from detaudit.source.edits import SourceText

_USED = 0
"""The seed in code that is advised."""


@dataclass(frozen=True)
class Candidate:
    """What may fix a difference: changes of files, or variables that are set before Python starts."""

    changes: tuple[Change, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    flag: str = ""


def candidates(
    trace: Trace, catalogue: Catalogue, tree: Tree, main: str, frameworks: Mapping[str, str], only: Sequence[str]
) -> Iterator[Candidate]:
    """Yield what may fix the difference of a trace, the likeliest first: edits, then settings, then variables.

    ``main`` is the file that runs first, ``""`` if that is not known: settings go there. Files outside of ``only``, if
    that is not empty, are left alone.
    """
    devices = [device for group in trace.groups for run in group.runs for device in run.devices] or ["cpu"]
    editable = (one for one in _edits(trace, tree) if tree.is_own(one.file) and _is_in(one.file, only))
    for edit in editable:
        yield Candidate((Change(edit.file, edit.line, edit.old, edit.new, edit.needs),))
    flags = [*_flags(trace, catalogue, frameworks, devices)]
    later = []
    for flag in flags:
        changes = _settings(flag, catalogue, tree, main, devices) if main and _is_in(main, only) else ()
        if changes:
            yield Candidate(changes, flag=flag.id)
        elif flag.env and not flag.call and not flag.set and not flag.patch:
            later.append(Candidate(variables=flag.env, flag=flag.id))
    yield from later


def _is_in(file: str, only: Sequence[str]) -> bool:
    return not only or any(Path(file).is_relative_to(one) for one in only)


def _edits(trace: Trace, tree: Tree) -> Iterator[Edit]:
    """Yield the edit of the culprit, then those of other lines that may be why."""
    culprit, seen = trace.culprit, set[tuple[str, int]]()
    if culprit is not None and culprit.suggested_edit is not None:
        seen.add((culprit.suggested_edit.file, culprit.suggested_edit.line))
        yield culprit.suggested_edit
    for source in _sources(trace):
        edit = edits.edit(tree.cwd, source.file, source.line, source.kind)
        if edit is not None and (edit.file, edit.line) not in seen:
            seen.add((edit.file, edit.line))
            yield edit


def _sources(trace: Trace) -> Iterable[Source]:
    culprit, narrowed = trace.culprit, trace.narrowed_to
    own = [culprit.source] if culprit is not None and culprit.source is not None else []
    others = culprit.suspects if culprit is not None else narrowed.suspects if narrowed is not None else ()
    return (*own, *others, *(source for group in trace.groups for source in group.sources))


def _flags(trace: Trace, catalogue: Catalogue, frameworks: Mapping[str, str], devices: Sequence[str]) -> Iterator[Flag]:
    """Yield the flags of the culprit; if none is known, those that seed what the training imports."""
    culprit = trace.culprit
    if culprit is not None and culprit.flags:
        yield from (catalogue.get(one.flag) for one in culprit.flags)
        return
    if culprit is None or culprit.cause is Cause.SEED:
        fit, _ = applicable((flag for flag in catalogue if flag.action in SEARCHED), frameworks, devices)
        yield from (flag for flag in fit if Cause.SEED in flag.causes and (flag.call or flag.set))


def _settings(flag: Flag, catalogue: Catalogue, tree: Tree, main: str, devices: Sequence[str]) -> tuple[Change, ...]:
    """Return the changes that do in code what a flag and those that it requires do; none if code cannot."""
    required = catalogue.select(flag.requires)
    if any(not (one.call or one.set) or one.patch or one.needs_value for one in (*required, flag)):
        return ()
    page = SourceText((tree.cwd / main).read_text(encoding=tree.text(main).encoding))
    lines, needs = list[str](), list[str]()
    for one in (*required, flag):
        for variable, value in one.env.items() if any(map(is_gpu, devices)) else ():
            lines.append(f'os.environ["{variable}"] = "{value}"')
            needs.append("import os")
        for name, arguments in one.call.items():
            module, line = _named(page, name)
            lines.append(f"{line}({', '.join(_arguments(arguments))})")
            needs += module
        for name, value in one.set.items():
            module, line = _named(page, name)
            lines.append(f"{line} = {value!r}")
            needs += module
    present = {line.strip() for line in page.lines}
    if all(line in present for line in lines):
        return ()
    return (Change(main, AFTER_IMPORTS, (), tuple(lines), tuple(dict.fromkeys(needs)), flag.id),)


def _arguments(arguments: Sequence[Any]) -> Iterator[str]:
    for argument in arguments:
        if isinstance(argument, dict):
            yield from (f"{name}={value!r}" for name, value in argument.items())
        else:
            yield repr(_USED if argument == SEED else argument)


def _named(page: SourceText, name: str) -> tuple[list[str], str]:
    """Return the import that a dotted name needs, if any, and the name as a file with these imports says it."""
    bound = {full: local for local, full in imported_at_top(page).items()}
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        prefix = ".".join(parts[:length])
        if prefix in bound:
            return [], ".".join([bound[prefix], *parts[length:]])
    return [f"import {parts[0]}"], name
