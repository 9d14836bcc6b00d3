"""The job behind ``--against``: runs of both sides in turn, at one path; what each repeats, and where they differ."""

import copy
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from detaudit import advice, private, store
from detaudit.against import commits
from detaudit.against.commits import Commit, Export
from detaudit.against.parting import parting
from detaudit.audit import AuditInProgress
from detaudit.compare import compare
from detaudit.compat import file_digest
from detaudit.errors import NothingToCompareError
from detaudit.judge.group import GroupInProgress
from detaudit.launch import Launcher
from detaudit.launch.plan import GroupPlan, Settings, in_copy, plan_group
from detaudit.launch.processes import shielded
from detaudit.launch.target import outer_environment, which
from detaudit.launch.tree import CACHE, GIT, TREE, SourceCopy
from detaudit.launch.workspace import WORK
from detaudit.model import (
    SCHEMA_VERSION,
    Audit,
    ComparedSide,
    Comparison,
    ComparisonVerdict,
    Doubt,
    Group,
    LikelyCause,
    NextStep,
    Parting,
    Purpose,
    Recording,
    RunRecord,
    Verdict,
    Warning,
    to_json,
)
from detaudit.model.against import (
    BuiltOnce,
    LoadedFromOutside,
    NothingShared,
    SideDiffers,
    SideUnusable,
    StateShared,
)
from detaudit.model.fact import now
from detaudit.model.warnings import NoChangeLoaded, PartingUnknown
from detaudit.notebooks.cells import SCRIPTS
from detaudit.runner import Observer, Result, Runner
from detaudit.runs import environment
from detaudit.runs.status import stopped

A, B = store.SIDES

WORKING_TREE = "working tree"

_COMPILED = (
    *(".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp", ".pyx", ".pxd", ".pxi", ".rs", ".go"),
    *(".f", ".for", ".f90", ".f95", ".S", ".s"),
)
"""Suffixes of sources of modules that are compiled before a training."""

_LINES = (r"\S*\.py:\d+", r'File "[^"]*", line \d+')
"""What printed text has of the lines of code, which are others on each side."""


@dataclass(frozen=True)
class AgainstRequest:
    """What to compare: the working tree with a commit. With ``traced``, also where the two codes part."""

    settings: Settings
    commit: Commit
    traced: bool = False


@dataclass
class Side:
    """One side: its runs, the files of the project that they loaded, with digests, and those from outside of it."""

    letter: str
    name: str
    commit: str
    changed: tuple[str, ...]
    plan: GroupPlan
    progress: AuditInProgress
    group: GroupInProgress
    first: Result | None = None
    audit: Audit | None = None
    loaded: dict[str, str] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)
    extensions: set[str] = field(default_factory=set)

    @property
    def runs(self) -> Group:
        """Its runs so far."""
        return self.group.result()

    @property
    def recording(self) -> Recording | None:
        """What its first finished run recorded, None if there is none."""
        return self.progress.recording


class Trees:
    """The code of both sides, which take turns at the path of one copy.

    Both have the files of the user that git ignores, such as data and modules that were built.
    """

    def __init__(self, commit: Commit, cwd: Path, results: Path) -> None:
        self.copy = SourceCopy(commit.root, cwd, results)
        self._commit, self._results = commit, results
        self._current = ""
        self.files, self.folders = commits.ignored(commit.root)
        self.flaws: list[Warning] = []

    def make(self) -> None:
        """Make both. Raises WorkspaceError if that is not possible."""
        export = Export(self._commit, self.copy.root, self._results)
        self.copy.make(lambda path: os.path.basename(path) == GIT or self.is_ignored(path))
        export.write()
        self.flaws = export.flaws
        self.copy.cwd.mkdir(parents=True, exist_ok=True)
        self._current = A
        self._park()
        self.copy.make(lambda path: CACHE not in path.split(os.sep))
        self._current = B

    def is_ignored(self, path: str) -> bool:
        """Whether git ignores a file or a folder, by its path below the root; the caches of Python are nobody's."""
        if CACHE in path.split(os.sep):
            return False
        return path in self.files or f"{path}/".startswith(self.folders)

    def show(self, letter: str) -> None:
        """Let this side be at the path of the copy."""
        if letter != self._current:
            self._park()
            self._parked(letter).rename(self.copy.root.parent)
            self._current = letter

    def _park(self) -> None:
        self.copy.root.parent.rename(self._parked(self._current))

    def _parked(self, letter: str) -> Path:
        return self._results / f"{TREE}-{letter}"

    def remove(self) -> None:
        """Remove both."""
        self.copy.remove()
        for letter in store.SIDES:
            shutil.rmtree(self._parked(letter), ignore_errors=True)


class Sides:
    """Compares two sides. After an interruption, ``result`` has what is known by then."""

    def __init__(self, request: AgainstRequest, launcher: Launcher, observer: Observer | None = None) -> None:
        self._request, self._launcher, self._observer = request, launcher, observer or Observer()
        settings, commit = request.settings, request.commit
        self._trees = Trees(commit, settings.cwd, settings.out)
        copied = replace(settings, ignore_text=(*settings.ignore_text, *_LINES))
        variables = {"GIT_OPTIONAL_LOCKS": "0"}  # a script that asks git does not write to the user's index
        self._settings = in_copy(copied, self._trees.copy, variables, _import_folders(settings, commit.root))
        self._runner = Runner(self._settings, launcher, self._observer)
        described = environment.describe({**os.environ, **settings.env})
        head, changed = commits.head(commit.root), commits.changed(commit.root)
        self._differences = commits.differences(commit)
        self.a = self._side(A, commit.name, commit.hash, (), described)
        self.b = self._side(B, WORKING_TREE, head, changed, described)
        self._parting: Parting | None = None
        self._traced = False

    def _side(
        self, letter: str, name: str, commit: str, changed: tuple[str, ...], described: Mapping[str, Any]
    ) -> Side:
        settings = replace(self._settings, out=self._request.settings.out / letter)
        (recipe,) = settings.recipes
        plan = plan_group(self._settings, recipe, self._runner.space, self._runner.refused(recipe.flags))
        plan = replace(plan, folder=settings.out / "runs" / plan.folder.name)
        progress = AuditInProgress(settings, copy.deepcopy(dict(described)))
        return Side(letter, name, commit, changed, plan, progress, progress.begin(plan, settings.cwd))

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both sides, the commit first."""
        return self.a, self.b

    def run(self) -> Comparison:
        """Run both sides in turn, so that what changes with time shows within a side, and compare them."""
        out = self._request.settings.out
        store.prepare(out)
        try:
            self._trees.make()
            for side in self.sides:
                private.make_folder(out / side.letter)
            self._run()
            if self._request.traced and self.result().verdict is ComparisonVerdict.DIFFERENT:
                self._part()
                self._traced = True
        finally:
            with shielded():
                self._trees.remove()
        return self.result()

    def _run(self) -> None:
        runs = self._settings.runs
        self._observer.group_started(self.a.plan.recipe.name, 2 * runs)
        for number in range(1, runs + 1):
            for side in self.sides:
                self._trees.show(side.letter)
                spec = side.plan.spec(number)
                try:
                    result = self._runner.run(number, spec)
                except KeyboardInterrupt:
                    side.group.add(stopped(number, spec), (), RunRecord())
                    side.audit = side.progress.report(interrupted=True)
                    raise
                self._take(side, result)
            if any(map(_ends, self.sides)):
                return

    def _take(self, side: Side, result: Result) -> None:
        side.progress.add(side.group, result)
        side.first = side.first or result
        work = Path(self._settings.out) / WORK / self._trees.copy.root.name
        root, out = self._request.commit.root, self._request.settings.out
        for process in result.processes:
            lines = process.settings
            for file in map(Path, (*lines.files, *lines.extensions) if lines else ()):
                if file.is_relative_to(work):
                    name = file.relative_to(work).as_posix()
                    if file.suffix not in SCRIPTS:
                        side.extensions |= {name} if self._trees.is_ignored(name) else set()
                    elif name not in side.loaded:
                        side.loaded[name] = _digest(self._trees.copy.root / name)
                elif file.is_relative_to(root) and not file.is_relative_to(out):
                    name = file.relative_to(root).as_posix()
                    if not self._trees.is_ignored(name):
                        side.outside.add(name)
                    elif file.suffix not in SCRIPTS:
                        side.extensions.add(name)
        side.audit = side.progress.report(leftovers=self._runner.leftovers, warnings=self._runner.warnings)
        store.save(self._request.settings.out / side.letter, side.audit)
        self._observer.run_finished(side.runs.runs[-1])

    def _part(self) -> None:
        first = self.result().first_difference
        records = [side.first for side in self.sides]
        if first is not None and all(records):
            self._parting = parting(
                self._runner,
                self.a.plan,
                self._observer,
                first,
                [one for one in records if one is not None],
                lambda side: self._trees.show(store.SIDES[side]),
                self._trees.copy.cwd,
            )

    def result(self, interrupted: bool = False) -> Comparison:
        """Return the comparison so far."""
        settings, doubts = self._request.settings, tuple(self._doubts())
        compared = self._compared()
        verdict = compared.verdict if compared is not None else ComparisonVerdict.INCONCLUSIVE
        if doubts or interrupted or compared is None:
            verdict = ComparisonVerdict.INCONCLUSIVE
        code = self._code()
        comparison = compared or Comparison(
            schema_version=SCHEMA_VERSION, command=settings.command, verdict=verdict, a=_empty(self.a), b=_empty(self.b)
        )
        explanation = comparison.explanation
        if explanation is not None and comparison.first_difference is not None:
            at_end = comparison.first_difference.at_end
            explanation = explanation if at_end else structs.replace(explanation, likely=(LikelyCause.CODE,))
        unloaded = tuple(name for name in self._differences if name.endswith(SCRIPTS))
        complete = verdict is ComparisonVerdict.IDENTICAL and unloaded and not code
        return structs.replace(
            comparison,
            command=settings.command,
            verdict=verdict,
            a=_ran(comparison.a, self.a),
            b=_ran(comparison.b, self.b),
            explanation=explanation,
            warnings=(
                *comparison.warnings,
                *self._trees.flaws,
                *([NoChangeLoaded(files=unloaded)] if complete else []),
                *([PartingUnknown()] if self._traced and self._parting is None else []),
                *self._runner.warnings,
            ),
            next_steps=tuple(self._next_steps(verdict)),
            doubts=doubts,
            code=code,
            parting=self._parting,
            interrupted=interrupted,
            started=settings.started,
            ended=now(),
        )

    def _compared(self) -> Comparison | None:
        a, b = (side.recording for side in self.sides)
        if a is None or b is None:
            return None
        try:
            return compare(a, b, names=(self.a.name, self.b.name))
        except NothingToCompareError:
            return None

    def _doubts(self) -> Iterator[Doubt]:
        ended_it = [side for side in self.sides if _ends(side)]
        for side in self.sides:
            group = side.runs
            if group.verdict is Verdict.NONDETERMINISTIC:
                yield SideDiffers(side=side.name, runs=group.compared, distinct_results=group.distinct_results)
            elif group.verdict is not Verdict.DETERMINISTIC and side in (ended_it or self.sides):
                yield SideUnusable(side=side.name, reason=group.reason)
            if side.outside:
                yield LoadedFromOutside(side=side.name, files=tuple(sorted(side.outside)))
        sources = tuple(name for name in self._differences if name.endswith(_COMPILED))
        extensions = self.a.extensions | self.b.extensions
        if sources and extensions:
            yield BuiltOnce(extensions=tuple(sorted(extensions)), sources=sources)
        if leftovers := self._runner.leftovers:
            yield StateShared(files=tuple(leftovers))
        if all(side.runs.verdict is Verdict.DETERMINISTIC for side in self.sides) and self._compared() is None:
            yield NothingShared()

    def _code(self) -> tuple[str, ...]:
        a, b = self.a.loaded, self.b.loaded
        return tuple(sorted(name for name in {*a, *b} if a.get(name) != b.get(name)))

    def _next_steps(self, verdict: ComparisonVerdict) -> Iterator[NextStep]:
        settings = self._request.settings
        if verdict is ComparisonVerdict.DIFFERENT and not self._request.traced:
            options = ("--against", self._request.commit.ref, "--trace", *settings.recipes[0].options)
            yield NextStep(command=advice.command(settings, *options, verb="compare"), purpose=Purpose.TRACE_CODES)
        if self.b.runs.verdict is Verdict.NONDETERMINISTIC:
            yield NextStep(command=advice.command(settings, verb="trace"), purpose=Purpose.TRACE)


class AuditOfSide:
    """The audit of a working tree that is compared with another commit on the way: ``comparison`` is what came of it.

    It is used as an Auditor is.
    """

    def __init__(self, request: AgainstRequest, launcher: Launcher, observer: Observer) -> None:
        self._sides, self._out = Sides(request, launcher, observer), request.settings.out
        self.comparison: Comparison | None = None

    def run(self) -> Audit:
        """Run both sides and return the report of the working tree."""
        self.comparison = self._sides.run()
        store.write(self._out / store.COMPARISON, to_json(self.comparison))
        return self.result()

    def result(self, interrupted: bool = False) -> Audit:
        """Return the audit so far."""
        side = self._sides.b
        audit = side.audit or side.progress.report()
        return structs.replace(audit, interrupted=interrupted)

    @property
    def recording(self) -> Recording | None:
        """What the first finished run recorded, None if there is none."""
        return self._sides.b.recording

    @property
    def code(self) -> Mapping[str, str]:
        """The user's source files that the runs loaded, with their digests."""
        return self._sides.b.progress.code


def _ends(side: Side) -> bool:
    """Whether more runs of a side would not help: two differ, or one failed."""
    return side.group.differs or not all(run.finished for run in side.runs.runs)


def _empty(side: Side) -> ComparedSide:
    return ComparedSide(name=side.name, recipe=side.runs.recipe, ranks=())


def _ran(compared: ComparedSide, side: Side) -> ComparedSide:
    group = side.audit.groups[0] if side.audit is not None else side.runs
    return structs.replace(compared, group=group, commit=side.commit, changed=side.changed)


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return file_digest(opened, "sha256").hexdigest()
    except OSError:
        return ""


_ASK = """
import json, os, sys
folders = [path for path in sys.path if os.path.isabs(path)]
for name, module in list(sys.modules.items()):
    if name.startswith("__editable__"):
        for package, path in dict(getattr(module, "MAPPING", None) or {}).items():
            parts = package.split(".")
            if os.path.normpath(path).split(os.sep)[-len(parts):] == parts:
                for part in parts:
                    path = os.path.dirname(os.path.normpath(path))
                folders.append(path)
print(json.dumps(folders))
"""
"""Asks a Python for the folders of editable installations: those on its path, and where finders of setuptools look."""


def _import_folders(settings: Settings, root: Path) -> tuple[str, ...]:
    """Return the folders of the repository that the Python of a target searches for modules by itself."""
    target = settings.target
    python = target.python if not target.is_command else _python_of(target.arguments[0])
    try:
        answer = subprocess.run(
            [python, "-c", _ASK],
            cwd="/",
            env={name: value for name, value in outer_environment().items() if not name.startswith("PYTHON")},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        folders = json.loads(answer.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return ()  # what is loaded from outside shows in the runs
    venv = Path(python).parent.parent
    return tuple(
        dict.fromkeys(one for one in folders if Path(one).is_relative_to(root) and not Path(one).is_relative_to(venv))
    )


def _python_of(program: str) -> str:
    """Return the Python that a command starts: itself, or that in the first line of a script; else that on PATH."""
    path = which(program) or program
    if os.path.basename(path).startswith("python"):
        return path
    try:
        with open(path, "rb") as file:
            first = file.readline(300).decode(errors="replace").strip()
    except OSError:
        first = ""
    shebang = first.removeprefix("#!").split(" ")[0] if first.startswith("#!") else ""
    return shebang if "python" in os.path.basename(shebang) else which("python") or which("python3") or path
