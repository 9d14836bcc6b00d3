"""The job that compares two environments: runs of one code in turn, and the first operation that differs."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from detaudit import advice
from detaudit.against.parting import InTurn, Turn, parting
from detaudit.against.turns import LINES, A, B, Side, Turns
from detaudit.environments import operation
from detaudit.environments.packages import PackagePair
from detaudit.launch import Launcher
from detaudit.launch.plan import Settings, in_copy
from detaudit.launch.tree import SourceCopy
from detaudit.launch.workspace import repository_root
from detaudit.model import (
    Apart,
    CodePlace,
    Comparison,
    ComparisonVerdict,
    Difference,
    Doubt,
    LikelyCause,
    NextStep,
    OperationPackage,
    Parting,
    Purpose,
    Stage,
    Verdict,
)
from detaudit.model.against import OtherEnvironment
from detaudit.model.trace import at_steps
from detaudit.model.warnings import OperationUnknown, SamePackages
from detaudit.runner import Observer, Result
from detaudit.runs.log import display_path, trainings
from detaudit.trace.instrumented import RunPair, Window
from detaudit.trace.operations import path_of
from detaudit.trace.tracer import around
from detaudit.wire import FRAMEWORKS


@dataclass(frozen=True)
class Environment:
    """One of the two: its name as the user typed it, and its Python."""

    name: str
    python: str


@dataclass(frozen=True)
class EnvironmentsRequest:
    """What to compare. ``options`` are those that name the environments. With ``traced``, also the first operation."""

    settings: Settings
    environments: tuple[Environment, Environment]
    packages: PackagePair
    options: tuple[str, ...]
    traced: bool = False


class Environments(Turns[Side]):
    """Compares two environments. Each run of either starts from a copy of the same files, at one path."""

    def __init__(self, request: EnvironmentsRequest, launcher: Launcher, observer: Observer | None = None) -> None:
        self._request, settings = request, request.settings
        self._copy = SourceCopy(repository_root(settings.cwd), settings.cwd, settings.out)
        pair = request.packages
        prefixes = tuple(re.escape(one.prefix) for one in (pair.a, pair.b))
        copied = replace(settings, ignore_text=(*settings.ignore_text, *LINES, *prefixes))
        super().__init__(settings, in_copy(copied, self._copy, {}), launcher, observer, traced=request.traced)
        self._prefixes = {A: pair.a.prefix, B: pair.b.prefix}
        self._foreign: dict[str, set[str]] = {A: set(), B: set()}
        self.a, self.b = map(self._side, (A, B), request.environments)

    def _side(self, letter: str, environment: Environment) -> Side:
        target = replace(self._settings.target, python=environment.python)
        plan, progress, group = self._planned(letter, replace(self._settings, target=target))
        return Side(letter=letter, name=environment.name, plan=plan, progress=progress, group=group)

    def _make(self) -> None:
        self._copy.make()

    def _remove(self) -> None:
        self._copy.remove()

    def _see(self, side: Side, result: Result) -> None:
        prefix = self._prefixes[side.letter]
        for process, _ in trainings(result.processes):
            folders = process.settings.packages if process.settings else ()
            if folders and not any(Path(folder).is_relative_to(prefix) for folder in folders):
                self._foreign[side.letter] |= {*folders}

    def _doubts_of(self, side: Side) -> Iterator[Doubt]:
        if folders := self._foreign[side.letter]:
            yield OtherEnvironment(side=side.name, folders=tuple(sorted(folders)))

    def _completed(self, comparison: Comparison) -> Comparison:
        pair, explanation = self._request.packages, comparison.explanation
        changes = pair.changes()
        first_difference = comparison.first_difference
        names = {one.name for one in changes}
        others = (one for one in comparison.environment_changes if not {one.name, pair.name_of(one.name)} & names)
        if explanation is not None and changes and first_difference is not None and not first_difference.at_end:
            explanation = structs.replace(explanation, likely=(LikelyCause.ENVIRONMENT,))
        first = self._parting or self._of_fit(comparison)
        return structs.replace(
            comparison,
            explanation=explanation,
            environment_changes=(*changes, *others),
            parting=first,
            warnings=(
                *comparison.warnings,
                *([] if changes else [SamePackages()]),
                *([OperationUnknown()] if self._parting_sought and first is None else []),
                *self._runner.warnings,
            ),
        )

    def _of_fit(self, comparison: Comparison) -> Parting | None:
        """Return the fit that differs first, if the data and the generators that it is given match."""
        first = comparison.first_difference
        if comparison.verdict is not ComparisonVerdict.DIFFERENT or first is None or not first.of_fit:
            return None
        if first.stage is not Stage.UPDATE or first.at_end or not {Stage.BATCH, Stage.RNG} <= {*comparison.stages}:
            return None
        place = CodePlace(operation=first.site or "")
        name = self._request.packages.name_of(operation.class_module(self._code(), place.operation.partition(".")[0]))
        package = operation.named(name, self._request.packages) if name else OperationPackage()
        return Parting(step=first.step, apart=Apart.OUTPUT, a=place, b=place, package=package)

    def _code(self) -> Iterator[bytes]:
        """Yield the files of the script's own code that runs loaded."""
        for name in {**self.a.progress.code, **self.b.progress.code}:
            with suppress(OSError):
                yield (self._user.cwd / name).read_bytes()

    def _find_parting(self, comparison: Comparison) -> Parting | None:
        first = comparison.first_difference
        a, b = self.a.first, self.b.first
        if first is None or a is None or b is None or self._of_fit(comparison) is not None:
            return None
        turns = [Turn(side.plan, lambda: None) for side in self.sides]
        frameworks = {part.framework for part in a.record.parts}
        if any(FRAMEWORKS[name].operations for name in frameworks & {*FRAMEWORKS}):
            where = parting(self._runner, turns, self._observer, first, (a, b), self._copy.cwd)
            if where is not None and where.apart is Apart.OUTPUT and where.a is not None:
                return structs.replace(where, package=self._package_of_operation(where.a.operation, frameworks))
            if where is not None and where.apart is not Apart.INPUT:
                return structs.replace(where, package=OperationPackage())
        return self._by_line(first, (a, b), turns)

    def _package_of_operation(self, name: str, frameworks: set[str]) -> OperationPackage:
        """Return the package of an operation: the namespace of one of torch says it."""
        pair, space = self._request.packages, name.partition(".")[0]
        module = "torch" if space in ("aten", "prims") else space if "." in name else "tensorflow"
        package = pair.name_of(module) if module in {*frameworks, space} else ""
        return operation.named(package, pair) if package else OperationPackage()

    def _by_line(self, first: Difference, results: tuple[Result, Result], turns: Sequence[Turn]) -> Parting | None:
        """Return the first line whose variables differ, None if none was recorded."""
        instrumented = InTurn(self._runner, turns[0].plan, self._observer, 3)
        instrumented.trained_by = max(len(result.run.ranks) for result in results)
        parts = [part for result in results for part in result.record.parts]
        instrumented.calls = bool(parts) and all(part.is_inference for part in parts)
        last = around(first, 1).last
        window = Window(0, last)
        self._observer.group_started(f"lines {at_steps(0, last)}", 3)
        (a, of_a), (again, of_again), (b, of_b) = (
            instrumented.recorded(turn, window, "lines") for turn in (turns[0], *turns)
        )
        path, of_other = _records(RunPair(a, b, (of_a, of_b), first))
        _, of_same = _records(RunPair(a, again, (of_a, of_again), first))
        if instrumented.failures or path is None or of_other is None or of_same is None:
            return None
        variable = operation.first_variable(path, of_other, of_same)
        if variable is None or variable.a is None:
            return None
        file, line = display_path(variable.one.file, turns[0].plan.spec(1).cwd), variable.one.line
        text = b""
        with suppress(OSError):
            text = (self._copy.cwd / file).read_bytes()
        called = operation.calls(text, line, operation.types(path, variable.a))
        code = text.splitlines()[line - 1].decode(errors="replace").strip() if text else ""
        name = ", ".join(one.name for one in called) or f"variable {variable.one.name}"
        place = CodePlace(operation=name, file=file, line=line, code=code)
        package = operation.package_of(called, self._request.packages)
        return Parting(step=variable.one.step, apart=Apart.VARIABLE, a=place, b=place, package=package)

    def _next_steps(self, verdict: ComparisonVerdict) -> Iterator[NextStep]:
        settings, options = self._request.settings, self._request.options
        recipe = settings.recipes[0].options
        if verdict is ComparisonVerdict.DIFFERENT and not self._request.traced:
            command = advice.command(settings, *options, "--trace", *recipe, verb="compare")
            yield NextStep(command=command, purpose=Purpose.TRACE_ENVIRONMENTS)
        for side in self.sides:
            if side.runs.verdict is Verdict.NONDETERMINISTIC:
                target = replace(settings.target, python=side.plan.spec(1).argv[0])
                yield NextStep(
                    command=advice.command(replace(settings, target=target), verb="trace"), purpose=Purpose.TRACE
                )
                return


def _records(pair: RunPair) -> tuple[Path | None, Path | None]:
    """Return the records of the two processes that differ; if nothing was trained, of those that began first."""
    if pair.processes() is not None:
        return pair.paths()
    first = [
        path_of(folder, one.processes[0]) if one.processes else None
        for one, folder in zip((pair.a, pair.b), pair.folders, strict=True)
    ]
    return first[0], first[1]
