"""Two sides that take turns, at one path: the runs of both, what each repeats, and where they differ."""

import copy
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from msgspec import structs

from detaudit import private, store
from detaudit.audit import AuditInProgress
from detaudit.compare import compare
from detaudit.errors import NothingToCompareError
from detaudit.judge.group import GroupInProgress
from detaudit.launch import Launcher
from detaudit.launch.plan import GroupPlan, Settings, plan_group
from detaudit.launch.processes import shielded
from detaudit.model import (
    SCHEMA_VERSION,
    Audit,
    ComparedSide,
    Comparison,
    ComparisonVerdict,
    Doubt,
    Group,
    NextStep,
    Parting,
    Recording,
    Verdict,
)
from detaudit.model.against import NothingShared, SideDiffers, SideUnusable, StateShared
from detaudit.model.fact import now
from detaudit.runner import Observer, Result, Runner
from detaudit.runs import environment

A, B = store.SIDES

LINES = (r"\S*\.py:\d+", r'File "[^"]*", line \d+')
"""What printed text has of the lines of code, which are others on each side."""


@dataclass(kw_only=True)
class Side:
    """One side, and its runs so far."""

    letter: str
    name: str
    plan: GroupPlan
    progress: AuditInProgress
    group: GroupInProgress
    first: Result | None = None
    audit: Audit | None = None

    @property
    def runs(self) -> Group:
        """Its runs so far."""
        return self.group.result()

    @property
    def recording(self) -> Recording | None:
        """What its first finished run recorded, None if there is none."""
        return self.progress.recording


S = TypeVar("S", bound=Side)


class Turns(Generic[S]):
    """Compares two sides. After an interruption, ``result`` has what is known by then.

    What differs between the sides is for a subclass to say: it makes the two with ``_planned``, and the methods that
    do nothing here are its own. ``settings`` are the user's, ``copied`` those of runs, which start from a copy.
    With ``traced``, it is also asked where two sides that differ part.
    """

    a: S
    b: S

    def __init__(
        self, settings: Settings, copied: Settings, launcher: Launcher, observer: Observer | None, *, traced: bool
    ) -> None:
        self._user, self._settings, self._traced = settings, copied, traced
        self._observer = observer or Observer()
        self._runner = Runner(copied, launcher, self._observer)
        self._described = environment.describe({**os.environ, **copied.env})
        self._parting: Parting | None = None
        self._parting_sought = False

    def _planned(self, letter: str, settings: Settings) -> tuple[GroupPlan, AuditInProgress, GroupInProgress]:
        """Return the plan of a side that has these settings, and the audit and the group that its runs go to."""
        (recipe,) = settings.recipes
        of_side = replace(settings, out=self._user.out / letter)
        plan = plan_group(settings, recipe, self._runner.space, self._runner.refused(recipe.flags))
        plan = replace(plan, folder=of_side.out / "runs" / plan.folder.name)
        progress = AuditInProgress(of_side, copy.deepcopy(dict(self._described)))
        return plan, progress, progress.begin(plan, settings.cwd)

    @property
    def sides(self) -> tuple[S, S]:
        """Both sides."""
        return self.a, self.b

    def _make(self) -> None:
        """Make the copy that runs start from. Raises WorkspaceError."""

    def _show(self, side: S) -> None:
        """Let this side be at the path of the copy."""

    def _remove(self) -> None:
        """Remove the copy."""

    def _see(self, side: S, result: Result) -> None:
        """Note what a run of a side loaded."""

    def _find_parting(self, comparison: Comparison) -> Parting | None:
        """Return where the two sides, which differ by this comparison, part; None if that is not known."""
        return None

    def _doubts_of(self, side: S) -> Iterator[Doubt]:
        """Yield why nothing follows from a side."""
        return iter(())

    def _doubts_of_both(self) -> Iterator[Doubt]:
        """Yield why nothing follows from what both sides loaded."""
        return iter(())

    def _next_steps(self, verdict: ComparisonVerdict) -> Iterator[NextStep]:
        """Yield what to do next."""
        return iter(())

    def run(self) -> Comparison:
        """Run both sides in turn, so that what changes with time shows within a side, and compare them."""
        store.prepare(self._user.out)
        try:
            self._make()
            for side in self.sides:
                private.make_folder(self._user.out / side.letter)
            self._run()
            if self._traced and (comparison := self.result()).verdict is ComparisonVerdict.DIFFERENT:
                self._parting, self._parting_sought = self._find_parting(comparison), True
        finally:
            with shielded():
                self._remove()
        return self.result()

    def _run(self) -> None:
        runs = self._settings.runs
        self._observer.group_started(self.a.plan.recipe.name, 2 * runs)
        for number in range(1, runs + 1):
            for side in self.sides:
                self._show(side)
                spec = side.plan.spec(number)
                try:
                    result = self._runner.run(number, spec)
                except KeyboardInterrupt:
                    side.group.add_interrupted(number, spec)
                    side.audit = side.progress.report(interrupted=True)
                    raise
                self._take(side, result)
            if any(map(_ends, self.sides)):
                return

    def _take(self, side: S, result: Result) -> None:
        side.progress.add(side.group, result)
        side.first = side.first or result
        self._see(side, result)
        side.audit = side.progress.report(leftovers=self._runner.leftovers, warnings=self._runner.warnings)
        store.save(self._user.out / side.letter, side.audit)
        self._observer.run_finished(side.runs.runs[-1])

    def result(self, interrupted: bool = False) -> Comparison:
        """Return the comparison so far."""
        doubts, compared = tuple(self._doubts()), self._compared()
        verdict = compared.verdict if compared is not None else ComparisonVerdict.INCONCLUSIVE
        if doubts or interrupted or compared is None:
            verdict = ComparisonVerdict.INCONCLUSIVE
        command = self._user.command
        comparison = compared or Comparison(
            schema_version=SCHEMA_VERSION, command=command, verdict=verdict, a=_empty(self.a), b=_empty(self.b)
        )
        comparison = structs.replace(
            comparison,
            command=command,
            verdict=verdict,
            a=_ran(comparison.a, self.a),
            b=_ran(comparison.b, self.b),
            next_steps=tuple(self._next_steps(verdict)),
            doubts=doubts,
            parting=self._parting,
            interrupted=interrupted,
            started=self._user.started,
            ended=now(),
        )
        return self._completed(comparison)

    def _completed(self, comparison: Comparison) -> Comparison:
        """Return the comparison with what is known of both sides beside their runs; a subclass adds to it."""
        return structs.replace(comparison, warnings=(*comparison.warnings, *self._runner.warnings))

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
            yield from self._doubts_of(side)
        yield from self._doubts_of_both()
        if leftovers := self._runner.leftovers:
            yield StateShared(files=tuple(leftovers))
        if all(side.runs.verdict is Verdict.DETERMINISTIC for side in self.sides) and self._compared() is None:
            yield NothingShared()


def _ends(side: Side) -> bool:
    """Whether more runs of a side would not help: two differ, or one failed."""
    return side.group.differs or not all(run.finished for run in side.runs.runs)


def _empty(side: Side) -> ComparedSide:
    return ComparedSide(name=side.name, recipe=side.runs.recipe, ranks=())


def _ran(compared: ComparedSide, side: Side) -> ComparedSide:
    group = side.audit.groups[0] if side.audit is not None else side.runs
    return structs.replace(compared, group=group)
