"""What may fix a difference: the edit of a line, code that does what a flag does, or else a variable."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from detaudit import rules
from detaudit.config.choice import applicable, is_gpu
from detaudit.config.flags import SEARCHED, SEED, Catalogue, Flag
from detaudit.fix.changes import AFTER_IMPORTS, Change, imported_at_top
from detaudit.fix.tree import Tree
from detaudit.model import Cause, Edit, Source, Trace
from detaudit.notebooks.cells import code_of
from detaudit.rules import GLOBAL, ONCE
from detaudit.rules.frameworks import EstimatorSeed
from detaudit.rules.rule import Rule
from detaudit.source.text import SourceText, last

_USED = 0
"""The seed in code that is advised."""


@dataclass(frozen=True)
class Candidate:
    """What may fix a difference: changes of files, or variables that are set before Python starts."""

    changes: tuple[Change, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    flag: str = ""

    @property
    def runs_first(self) -> bool:
        """Whether all its changes run once, before anything is drawn: with them, nothing repeats but by chance."""
        return all(change.line == AFTER_IMPORTS for change in self.changes)

    @property
    def seeds(self) -> bool:
        """Whether any of its changes gives a seed."""
        return any(change.rule in rules.SEEDING for change in self.changes)


@dataclass(frozen=True)
class Training:
    """What is known of the training: the file that runs first, ``""`` if that is not known, all files, the frameworks.

    Files are the user's, as seen from the working directory; ``devices`` have weights.
    """

    main: str
    files: Sequence[str]
    frameworks: Mapping[str, str]
    devices: Sequence[str]


def candidates(
    trace: Trace, catalogue: Catalogue, tree: Tree, training: Training, only: Sequence[str]
) -> Iterator[Candidate]:
    """Yield what may fix the difference of a trace, the likeliest first, each once.

    That is the edit of its culprit, then settings in code, edits of other lines that may be why, seeds of what the
    training imports, and variables at last.
    Files outside of ``only``, if that is not empty, are left alone.
    """

    def may_have_workers(file: str) -> bool:
        return rules.has_workers(_data(tree, tree.name(file)))

    def editable(file: str, rule: str = "") -> bool:
        if rule == ONCE.name and (file != training.main or any(map(may_have_workers, training.files))):
            return False  # they would draw the same numbers
        return tree.is_own(file) and (not only or any(Path(file).is_relative_to(one) for one in only))

    culprit, seen = trace.culprit, set[tuple[str, int, tuple[str, ...]]]()
    main = training.main if training.main and editable(training.main) else ""
    own = [culprit.suggested_edit] if culprit is not None and culprit.suggested_edit is not None else []
    code, variables = _settings(trace, catalogue, tree, replace(training, main=main))
    yield from _new(own, seen, editable)
    yield from code
    lines = (
        (tree.name(one.file), one.line, (*rules.about(one.kind, one.takes), *rules.passed(one.takes)))
        for one in _sources(trace)
    )
    files = filter(editable, dict.fromkeys([main, *map(tree.name, training.files)]))
    table = (*_takers(trace, tree), *rules.TABLE)
    shown = ((file, line, (rule,)) for file in files for line, rule in rules.places(_data(tree, file), table))
    edited = (
        edit for file, line, fitting in chain(lines, shown) for edit in rules.edits(tree.cwd, file, line, fitting)
    )
    yield from _new(edited, seen, editable)
    drawing = dict.fromkeys(tree.name(one.file) for one in _sources(trace) if one.generators)
    for file in [main] if main else filter(editable, drawing):  # a stage of a command that is no script itself
        yield from (one for one in _seeds(catalogue, tree, replace(training, main=file)) if one not in code)
    yield from variables


def _new(
    edits_: Iterable[Edit], seen: set[tuple[str, int, tuple[str, ...]]], editable: Callable[[str, str], bool]
) -> Iterator[Candidate]:
    for edit in edits_:
        key = (edit.file, edit.line, edit.new)
        if key not in seen and editable(edit.file, edit.rule):
            seen.add(key)
            yield Candidate((Change(edit.file, edit.line, edit.old, edit.new, edit.needs, rule=edit.rule),))


def _data(tree: Tree, file: str) -> bytes:
    try:
        return code_of(tree.cwd / file)
    except OSError:
        return b""


def _sources(trace: Trace) -> Iterable[Source]:
    culprit, narrowed = trace.culprit, trace.narrowed_to
    own = [culprit.source] if culprit is not None and culprit.source is not None else []
    others = culprit.suspects if culprit is not None else narrowed.suspects if narrowed is not None else ()
    return (*own, *others, *(source for group in trace.groups for source in group.sources))


def _takers(trace: Trace, tree: Tree) -> list[Rule]:
    """Return the rules for what was shown to take a seed by lines that run once, wherever that is made."""
    once = (
        one for one in _sources(trace) if one.takes and rules.is_reached_once(tree.cwd, tree.name(one.file), one.line)
    )
    return [EstimatorSeed.of(taker) for taker in dict.fromkeys(taker for one in once for taker in one.takes)]


def _settings(
    trace: Trace, catalogue: Catalogue, tree: Tree, training: Training
) -> tuple[list[Candidate], list[Candidate]]:
    """Return what code can do of the flags of a culprit, and what only variables can."""
    code, variables = list[Candidate](), list[Candidate]()
    for one in trace.culprit.flags if trace.culprit is not None else ():
        flag = catalogue.get(one.flag)
        changes = _in_code(flag, catalogue, tree, training)
        if changes:
            code.append(Candidate(changes, flag=flag.id))
        elif flag.env and not (flag.call or flag.set or flag.patch or flag.needs_value):
            variables.append(Candidate(variables=flag.environment(_USED), flag=flag.id))
    return code, variables


def _seeds(catalogue: Catalogue, tree: Tree, training: Training) -> Iterator[Candidate]:
    """Yield the settings that seed the global generators of what the training imports."""
    standard = (flag for flag in catalogue if flag.action in SEARCHED and Cause.SEED in flag.causes)
    fit, _ = applicable(standard, training.frameworks, training.devices)
    for flag in fit:
        changes = _in_code(flag, catalogue, tree, training)
        if changes:
            yield Candidate(changes, flag=flag.id)


def _in_code(flag: Flag, catalogue: Catalogue, tree: Tree, training: Training) -> tuple[Change, ...]:
    """Return the changes that do in code what a flag and those that it requires do; none if code cannot."""
    required, main = catalogue.select(flag.requires), training.main
    if not main or any(not (one.call or one.set) or one.patch or one.needs_value for one in (*required, flag)):
        return ()
    try:
        page = SourceText.of(code_of(tree.cwd / main))
    except (SyntaxError, ValueError):  # of a newer Python than this one
        return ()
    lines, needs = list[str](), list[str]()
    for one in (*required, flag):
        for variable, value in one.env.items() if any(map(is_gpu, training.devices)) else ():
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
    if Cause.SEED in flag.causes and _spawns(page):
        return ()  # each worker imports this file, and would draw the same numbers
    present = {line.rstrip() for line in page.lines}  # in a function, it may run too late
    if all(line in present for line in lines):
        return ()
    rule = GLOBAL.name if Cause.SEED in flag.causes else ""
    return (Change(main, AFTER_IMPORTS, (), tuple(lines), tuple(dict.fromkeys(needs)), flag.id, rule),)


_SPAWNED = re.compile(r"""["'](?:spawn|forkserver)["']""")
_WORKERS = {"Pool", "Process", "ProcessPoolExecutor"}


def _spawns(page: SourceText) -> bool:
    """Whether a file starts processes that import it: by a method of multiprocessing, or by that of torch."""
    if any(page.full(function) == "torch.multiprocessing.spawn" for function in _called(page)):
        return True
    return any(map(_SPAWNED.search, page.lines)) and not _WORKERS.isdisjoint(map(last, _called(page)))


def _called(page: SourceText) -> Iterator[ast.expr]:
    return (node.func for node in ast.walk(page.reader.tree) if isinstance(node, ast.Call))


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
    if parts[0] in bound.values() or f"{parts[0]}.*" in bound:  # from numpy import random
        return [f"import {parts[0]} as {parts[0]}_module"], ".".join([f"{parts[0]}_module", *parts[1:]])
    return [f"import {parts[0]}"], name
