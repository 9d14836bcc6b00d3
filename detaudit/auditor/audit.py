"""Run one audit: plan, launch, compare, localize; save after every run."""

import os
from collections.abc import Callable
from typing import Any

import msgspec

from detaudit.auditor import advice, store
from detaudit.auditor.baseline import recordings
from detaudit.auditor.evidence import environment
from detaudit.auditor.judge import verdict
from detaudit.auditor.judge.abreast import Abreast
from detaudit.auditor.judge.group import GroupInProgress
from detaudit.auditor.judge.run_status import stopped
from detaudit.auditor.runs.followed import Limits
from detaudit.auditor.runs.ladder import FIRST_S, Ladder
from detaudit.auditor.runs.observer import Observer
from detaudit.auditor.runs.runner import Result, Runner
from detaudit.auditor.runs.side_by_side import SideBySide
from detaudit.errors import StorageError, WorkspaceError
from detaudit.launch import Launcher, refusals
from detaudit.launch.plan import GroupPlan, Settings, plan_group
from detaudit.launch.pool import Pool
from detaudit.launch.shield import shielded
from detaudit.model import SCHEMA_VERSION, Audit, Group, Recording, Run, RunRecord, Status, Verdict, Warning
from detaudit.model.times import now
from detaudit.model.warnings import AuditStopped, RunsFailAlike


class Auditor:
    """Runs one audit. After an interruption, ``result`` has what finished before it."""

    def __init__(self, settings: Settings, launcher: Launcher, observer: Observer | None = None) -> None:
        self._settings, self._observer = settings, observer or Observer()
        self._pool: Pool[Result] = Pool(launcher, threads=len(settings.jobs.slots) > 1)
        self._runner = Runner(settings, self._pool, self._observer)
        self._environment: dict[str, Any] = environment.describe(
            settings.jobs.without_devices({**os.environ, **settings.env})
        )
        if share := settings.jobs.slots[0].cpus:
            self._environment["cpus"] = len(share)
        self._groups: list[Group] = []
        self._first: tuple[Group, Result] | None = None
        self._stopped: list[Warning] = []

    def run(self) -> Audit:
        """Audit every recipe in turn and return the report."""
        store.prepare(self._settings.out)
        for recipe in self._settings.recipes:
            refused = refusals.refused(recipe.flags, self._settings.target)
            plan = plan_group(self._settings, recipe, self._runner.space, refused)
            self._observer.group_started(recipe.name, plan.runs)
            try:
                self._run_group(plan)
            except (StorageError, WorkspaceError) as error:
                if not any(group.runs for group in self._groups):
                    raise
                self._stopped.append(AuditStopped(message=error.message, hint=error.hint))
                break
        return self.result()

    def _run_group(self, plan: GroupPlan) -> None:
        group = GroupInProgress(plan, self._settings.cwd)
        self._groups.append(group.result())
        timed = self._settings.until is not None and self._settings.until.step is None and self._first is None
        ladder = Ladder(plan.runs, climbs=self._settings.stepwise and len(plan.jobs.slots) == 1)
        with SideBySide(self._pool, plan.jobs, self._work(plan, group, ladder), first_alone=timed) as runs:
            try:
                for result in runs.results(lambda: ladder.total):
                    self._add(group, result)
                    ladder.take(result.run, differs=group.differs)
                    store.save(self._settings.out, self.result())
                    self._observer.run_finished(self._groups[-1].runs[-1])
                    if (group.differs and self._settings.fail_fast) or self._fails_again(ladder.more):
                        break
            except (KeyboardInterrupt, StorageError, WorkspaceError) as error:
                with shielded():  # from a further interruption
                    for number, finished in runs.stop():
                        if finished is not None:
                            self._add(group, finished)
                        elif isinstance(error, KeyboardInterrupt):
                            group.add(stopped(number, plan.spec(number)), (), RunRecord())
                            self._groups[-1] = group.result()
                raise

    def _work(self, plan: GroupPlan, group: GroupInProgress, ladder: Ladder) -> Callable[[int], Result]:
        """Return what does the run with a number.

        Two runs that differ early end the others where they do: one after another by a ladder, at once by comparing
        them as they go on.
        """
        settings, at_once = self._settings, len(plan.jobs.slots) > 1
        ends = at_once and (settings.fail_fast or settings.stepwise)
        abreast = Abreast(0.0 if settings.fail_fast else FIRST_S) if ends else None

        def run(number: int) -> Result:
            limits = Limits(abreast=abreast)
            if settings.stepwise and not at_once:
                self._observer.runs_planned(ladder.total, least=ladder.climbs)
                reference = group.record if ladder.follows else None
                limits = Limits(reference, until=ladder.until, same_length=not settings.fail_fast)
            return self._runner.run(number, plan.spec(number), limits)

        return run

    def _add(self, group: GroupInProgress, result: Result) -> None:
        group.add(result.run, result.processes, result.record, result.threads)
        environment.add_processes(self._environment, result.processes)
        self._groups[-1] = group.result()
        if self._first is None and result.run.finished:
            self._first = self._groups[-1], result
        difference = self._groups[-1].runs[-1].first_difference
        if difference is not None:
            self._observer.differs(difference.step)

    def _fails_again(self, more: bool) -> bool:
        """Return whether all runs of this recipe failed, the last two alike, so that more would not help."""
        group = self._groups[-1]
        if len(group.runs) < 2 or any(run.status not in (Status.FAILED, Status.TIMEOUT) for run in group.runs):
            return False
        before, last = group.runs[-2:]
        if _failure(before) != _failure(last):
            return False
        if more:
            self._stopped.append(RunsFailAlike(recipe=group.recipe.name, runs=(before.id, last.id)))
        return True

    @property
    def recording(self) -> Recording | None:
        """What the first finished run recorded, None if there is none."""
        if self._first is None:
            return None
        group, result = self._first
        where = environment.relevant(self._environment)
        return recordings.recording_of(self._settings.target.words, group.recipe, where, result.run, result.record)

    def result(self, interrupted: bool = False) -> Audit:
        """Return the audit so far."""
        settings, groups = self._settings, tuple(self._groups)
        warnings = advice.warnings(groups, self._runner.leftovers, self._runner.warnings)
        unfinished = self._stopped or len(groups) < len(settings.recipes)
        verdicts = [*(group.verdict for group in groups), *([Verdict.INCONCLUSIVE] if unfinished else [])]
        return Audit(
            schema_version=SCHEMA_VERSION,
            command=settings.command,
            environment=msgspec.to_builtins(self._environment),
            verdict=verdict.of_groups(verdicts),
            groups=groups,
            warnings=(*warnings, *self._stopped),
            next_steps=advice.next_steps(settings, groups, self._runner.leftovers),
            interrupted=interrupted,
            target=settings.target.words,
            started=settings.started,
            ended=now(),
            loss_pattern=settings.loss_pattern.pattern if settings.loss_pattern else None,
        )


def _failure(run: Run) -> tuple[object, ...]:
    """Return how a run failed: how it ended, and the class of its exception if its last line names one."""
    last = run.stderr_tail[-1] if run.stderr_tail else ""
    return run.status, run.exit_code, last.partition(":")[0]
