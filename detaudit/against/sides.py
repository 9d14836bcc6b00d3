"""The job behind ``--against``: runs of both sides in turn, at one path; what each repeats, and where they differ."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from msgspec import structs

from detaudit import advice, store
from detaudit.against import commits
from detaudit.against.commits import Commit, Export
from detaudit.against.parting import Turn, parting
from detaudit.against.turns import LINES, A, B, Side, Turns
from detaudit.compat import file_digest
from detaudit.launch import Launcher
from detaudit.launch.plan import Settings, in_copy
from detaudit.launch.target import outer_environment, which
from detaudit.launch.tree import CACHE, GIT, TREE, SourceCopy
from detaudit.launch.workspace import WORK
from detaudit.model import (
    Audit,
    Comparison,
    ComparisonVerdict,
    Doubt,
    LikelyCause,
    NextStep,
    Parting,
    Purpose,
    Recording,
    Verdict,
    Warning,
    to_json,
)
from detaudit.model.against import (
    BuiltOnce,
    LoadedFromOutside,
)
from detaudit.model.warnings import NoChangeLoaded, PartingUnknown
from detaudit.notebooks.cells import SCRIPTS
from detaudit.runner import Observer, Result

WORKING_TREE = "working tree"

_COMPILED = (
    *(".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp", ".pyx", ".pxd", ".pxi", ".rs", ".go"),
    *(".f", ".for", ".f90", ".f95", ".S", ".s"),
)
"""Suffixes of sources of modules that are compiled before a training."""


@dataclass(frozen=True)
class AgainstRequest:
    """What to compare: the working tree with a commit. With ``traced``, also where the two codes part."""

    settings: Settings
    commit: Commit
    traced: bool = False


@dataclass(kw_only=True)
class CodeSide(Side):
    """A side that is a commit: the files of the project that its runs loaded, with digests, and those from outside."""

    commit: str
    changed: tuple[str, ...]
    loaded: dict[str, str] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)
    extensions: set[str] = field(default_factory=set)


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


class Sides(Turns[CodeSide]):
    """Compares a commit with the working tree."""

    def __init__(self, request: AgainstRequest, launcher: Launcher, observer: Observer | None = None) -> None:
        self._request = request
        settings, commit = request.settings, request.commit
        self._trees = Trees(commit, settings.cwd, settings.out)
        copied = replace(settings, ignore_text=(*settings.ignore_text, *LINES))
        variables = {"GIT_OPTIONAL_LOCKS": "0"}  # a script that asks git does not write to the user's index
        copied = in_copy(copied, self._trees.copy, variables, _import_folders(settings, commit.root))
        super().__init__(settings, copied, launcher, observer, traced=request.traced)
        head, changed = commits.head(commit.root), commits.changed(commit.root)
        self._differences = commits.differences(commit)
        self.a = self._side(A, commit.name, commit.hash, ())
        self.b = self._side(B, WORKING_TREE, head, changed)

    def _side(self, letter: str, name: str, commit: str, changed: tuple[str, ...]) -> CodeSide:
        plan, progress, group = self._planned(letter, self._settings)
        return CodeSide(
            letter=letter, name=name, commit=commit, changed=changed, plan=plan, progress=progress, group=group
        )

    def _make(self) -> None:
        self._trees.make()

    def _show(self, side: CodeSide) -> None:
        self._trees.show(side.letter)

    def _remove(self) -> None:
        self._trees.remove()

    def _see(self, side: CodeSide, result: Result) -> None:
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

    def _find_parting(self, comparison: Comparison) -> Parting | None:
        first = comparison.first_difference
        a, b = self.a.first, self.b.first
        if first is None or a is None or b is None:
            return None
        turns = [Turn(side.plan, partial(self._show, side)) for side in self.sides]
        return parting(self._runner, turns, self._observer, first, (a, b), self._trees.copy.cwd)

    def _completed(self, comparison: Comparison) -> Comparison:
        code, explanation = self._code(), comparison.explanation
        if explanation is not None and comparison.first_difference is not None:
            at_end = comparison.first_difference.at_end
            explanation = explanation if at_end else structs.replace(explanation, likely=(LikelyCause.CODE,))
        unloaded = tuple(name for name in self._differences if name.endswith(SCRIPTS))
        complete = comparison.verdict is ComparisonVerdict.IDENTICAL and unloaded and not code
        a, b = self.sides
        return structs.replace(
            comparison,
            a=structs.replace(comparison.a, commit=a.commit, changed=a.changed),
            b=structs.replace(comparison.b, commit=b.commit, changed=b.changed),
            explanation=explanation,
            warnings=(
                *comparison.warnings,
                *self._trees.flaws,
                *([NoChangeLoaded(files=unloaded)] if complete else []),
                *([PartingUnknown()] if self._parting_sought and self._parting is None else []),
                *self._runner.warnings,
            ),
            code=code,
        )

    def _doubts_of(self, side: CodeSide) -> Iterator[Doubt]:
        if side.outside:
            yield LoadedFromOutside(side=side.name, files=tuple(sorted(side.outside)))

    def _doubts_of_both(self) -> Iterator[Doubt]:
        sources = tuple(name for name in self._differences if name.endswith(_COMPILED))
        extensions = self.a.extensions | self.b.extensions
        if sources and extensions:
            yield BuiltOnce(extensions=tuple(sorted(extensions)), sources=sources)

    def _code(self) -> tuple[str, ...]:
        a, b = self.a.loaded, self.b.loaded
        return tuple(sorted(name for name in {*a, *b} if a.get(name) != b.get(name)))

    def _next_steps(self, verdict: ComparisonVerdict) -> Iterator[NextStep]:
        settings = self._request.settings
        if verdict is ComparisonVerdict.DIFFERENT and not self._request.traced:
            options = ("--against", self._request.commit.ref, "--trace", *settings.recipes[0].options)
            yield NextStep(command=advice.command(settings, *options, verb="compare"), purpose=Purpose.TRACE_CODES)
        if self.b.runs.verdict is Verdict.NONDETERMINISTIC:
            traced = advice.command(settings, *settings.recipes[0].options, verb="trace")
            yield NextStep(command=traced, purpose=Purpose.TRACE)


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
