"""The job behind ``run``: groups and their runs, one after another, saved after every run."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from detaudit import advice, baseline, history, store
from detaudit.errors import StorageError, WorkspaceError
from detaudit.judge import verdict
from detaudit.judge.group import GroupInProgress, after_leftovers
from detaudit.judge.live import Abreast
from detaudit.judge.policy import FIRST_S, NextRun, next_run
from detaudit.launch import Launcher
from detaudit.launch.plan import GroupPlan, Settings, plan_group
from detaudit.launch.processes import shielded
from detaudit.launch.put_aside import StateInUseError
from detaudit.launch.slots import Pool
from detaudit.model import (
    SCHEMA_VERSION,
    AppliedRecipe,
    Audit,
    Group,
    Recording,
    Run,
    Source,
    Status,
    Verdict,
    Warning,
)
from detaudit.model.fact import now
from detaudit.model.files import FreshStart, LeftState
from detaudit.model.warnings import AuditStopped, RunsFailAlike, RunsLeftNothing
from detaudit.runner import Limits, MakeRunner, Observer, Result, Runner, SideBySide, described
from detaudit.runs import environment
from detaudit.runs.inputs import Inputs
from detaudit.source import machine_reads

# What an audit knows so far: it takes in runs, wherever they were started, and is a report at any time.


class AuditInProgress:
    """The groups of an audit, and the environment of their runs, which is extended by what they imported.

    It is that of the first run if the runs are done on other machines.
    """

    def __init__(self, settings: Settings, described: dict[str, Any]) -> None:
        self._settings, self._environment = settings, described
        self._elsewhere = False
        self._groups: list[Group] = []
        self._first: tuple[AppliedRecipe, Result] | None = None
        self._plan: GroupPlan | None = None
        self._inputs = Inputs(settings.cwd, settings.target.words)
        self._read: tuple[int, tuple[Source, ...]] = (0, ())
        self.stopped: list[Warning] = []

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups so far, the last one maybe unfinished."""
        return tuple(self._groups)

    @property
    def steps(self) -> int | None:
        """How many steps a run did that went to its end, None as long as none did."""
        runs = (run for group in self._groups for run in group.runs if run.is_whole)
        return next((run.steps for run in runs), None)

    @property
    def has_finished_runs(self) -> bool:
        """Whether any run did all that was wanted of it."""
        return self._first is not None

    def begin(self, plan: GroupPlan, folder: Path) -> GroupInProgress:
        """Return a new group, which ``add`` and ``update`` are about from now on; ``folder`` has the user's files."""
        self._plan, group = plan, GroupInProgress(plan, folder)
        self._groups.append(group.result())
        return group

    def update(self, group: GroupInProgress) -> Group:
        """Note that the group has changed, and return what it shows."""
        self._groups[-1] = group.result()
        return self._groups[-1]

    def consider_earlier(self, group: GroupInProgress) -> None:
        """Take in what earlier audits say of a group that is complete."""
        self._groups[-1] = history.considered(group.result(), self.report(), self._settings, group.record)

    def add(self, group: GroupInProgress, result: Result) -> Group:
        """Take in a run of the group, and return what the group shows now."""
        self.take(group, result)
        return self.update(group)

    def take(self, group: GroupInProgress, result: Result) -> None:
        """Take in a run of the group, one of many: ``update`` judges them together."""
        group.add(result.run, result.processes, result.record, result.threads, result.machine)
        if result.machine is not None and not self._elsewhere:
            self._environment, self._elsewhere = copy.deepcopy(dict(result.machine.described)), True
        environment.add_processes(self._environment, result.processes)
        if self._plan is not None:
            self._inputs.take(result.processes, self._plan.spec(result.run.id).cwd)
        if self._first is None and result.run.finished:
            self._first = group.recipe, result

    @property
    def _reads(self) -> tuple[Source, ...]:
        """What the script reads of its machine; only runs that match ask for that, and only if nothing varied yet."""
        if self._settings.vary or not any(group.verdict is Verdict.DETERMINISTIC for group in self._groups):
            return ()
        if self._read[0] != len(self.code):
            self._read = len(self.code), machine_reads.reads(self._settings.cwd, sorted(self.code))
        return self._read[1]

    @property
    def code(self) -> Mapping[str, str]:
        """The user's source files that the runs loaded, as people name them, with their digests."""
        return self._inputs.code

    @property
    def recording(self) -> Recording | None:
        """What the first finished run recorded, None if there is none."""
        if self._first is None:
            return None
        recipe, result = self._first
        where = environment.relevant(self._environment)
        return baseline.recording_of(self._settings.target.words, recipe, where, result.run, result.record)

    def report(
        self,
        *,
        leftovers: list[str] | None = None,
        warnings: tuple[Warning, ...] = (),
        interrupted: bool = False,
    ) -> Audit:
        """Return the audit so far; ``leftovers`` are files that one run wrote and a later one read."""
        settings, groups = self._settings, self.groups
        if leftovers:
            groups = tuple(map(after_leftovers, groups))
        unfinished = self.stopped or len(groups) < len(settings.recipes)
        verdicts = [*(group.verdict for group in groups), *([Verdict.INCONCLUSIVE] if unfinished else [])]
        return Audit(
            schema_version=SCHEMA_VERSION,
            command=settings.command,
            environment=msgspec.to_builtins(self._environment),
            verdict=verdict.of_groups(verdicts),
            groups=groups,
            warnings=(
                *advice.warnings(groups, leftovers or [], warnings, isolated=settings.isolate),
                *self.stopped,
            ),
            next_steps=advice.next_steps(settings, groups, leftovers or [], self._reads),
            interrupted=interrupted,
            target=settings.target.words,
            started=settings.started,
            ended=now(),
            across=settings.across,
            loss_pattern=settings.loss_pattern.pattern if settings.loss_pattern else None,
            code=dict(sorted(self.code.items())),
            data=self._inputs.data if not self._elsewhere else None,
            installed=self._inputs.installed,
            options=history.options(settings),
        )


# Run one audit: plan, launch, compare, localize; save after every run.


class Auditor:
    """Runs one audit. After an interruption, ``result`` has what finished before it."""

    def __init__(
        self,
        settings: Settings,
        launcher: Launcher,
        observer: Observer | None = None,
        make_runner: MakeRunner = Runner,
    ) -> None:
        self._settings, self._observer = settings, observer or Observer()
        self._pool: Pool[Result] = Pool(launcher, threads=len(settings.jobs.slots) > 1)
        self._runner = make_runner(settings, self._pool, self._observer)
        self._audit = AuditInProgress(settings, described(settings))
        self._steps = history.earlier_steps(settings) if settings.stepwise else None

    def run(self) -> Audit:
        """Audit every recipe in turn and return the report."""
        store.prepare(self._settings.out)
        for recipe in self._settings.recipes:
            plan = plan_group(self._settings, recipe, self._runner.space, self._runner.refused(recipe.flags))
            self._observer.group_started(recipe.name, plan.runs)
            try:
                self._run_group(plan)
            except (StorageError, WorkspaceError) as error:
                if not any(group.runs for group in self._audit.groups):
                    raise
                self._audit.stopped.append(AuditStopped(message=error.message, hint=error.hint))
                break
        return self.result()

    def _run_group(self, plan: GroupPlan) -> None:
        group = self._audit.begin(plan, self._settings.cwd)
        until = self._settings.until
        timed = until is not None and until.step is None and not self._audit.has_finished_runs
        with SideBySide(self._pool, plan.jobs, self._work(plan, group), first_alone=timed) as runs:
            empty = True
            try:
                for result in runs.results(lambda: self._total(plan, group)):
                    judged = self._add(group, result)
                    store.save(self._settings.out, self.result())
                    self._observer.run_finished(judged.runs[-1])
                    empty = empty and _left_nothing(result)
                    if (group.differs and self._settings.fail_fast) or self._fails_again(
                        judged, self._next_run(plan, group) is not None, empty
                    ):
                        break
            except (KeyboardInterrupt, StorageError, WorkspaceError) as error:
                with shielded():  # from a further interruption
                    for number, finished in runs.stop():
                        if finished is not None:
                            self._add(group, finished)
                        elif isinstance(error, KeyboardInterrupt):
                            group.add_interrupted(number, plan.spec(number))
                            self._audit.update(group)
                raise
        if self._next_run(plan, group) is None:
            self._check_state(plan, group)
            self._audit.consider_earlier(group)
            store.save(self._settings.out, self.result())

    def _next_run(self, plan: GroupPlan, group: GroupInProgress) -> NextRun | None:
        climbs = self._settings.stepwise and len(plan.jobs.slots) == 1
        return next_run(group.result().runs, plan.runs, climbs=climbs, steps=self._audit.steps or self._steps)

    def _total(self, plan: GroupPlan, group: GroupInProgress) -> int:
        planned = self._next_run(plan, group)
        return planned.total if planned is not None else len(group.result().runs)

    def _check_state(self, plan: GroupPlan, group: GroupInProgress) -> None:
        """If matching runs read what earlier ones had left, do one more without it, alone."""
        reads = self._runner.state_read(plan.recipe.name)
        runs = group.result().runs
        complete = [run for run in runs if run.status is Status.OK and run.through is None]
        failed = [run for run in runs if not run.finished]
        if not reads or group.differs or failed or len(complete) < 2:
            return
        described = tuple(map(self._runner.described, reads))
        older = [path.path for path, read in zip(described, reads, strict=True) if not read.left.created]
        number = len(runs) + 1
        left_state = LeftState(reads=described, outcome=FreshStart.EXISTED, older=tuple(older))
        if len(older) < len(reads):
            left_state = msgspec.structs.replace(left_state, outcome=FreshStart.FAILED, run=number)
            self._observer.runs_planned(number, least=False)
            spec = replace(plan.spec(1), folder=plan.folder / str(number))  # nothing else may vary
            try:
                result = self._runner.run(number, spec, without=reads)
            except StateInUseError as error:
                left_state = msgspec.structs.replace(left_state, outcome=FreshStart.IN_USE, run=0, detail=str(error))
            else:
                shown = self._add(group, result)
                if shown.runs[-1].status is Status.OK:
                    outcome = FreshStart.DIFFERENT if shown.distinct_results > 1 else FreshStart.SAME
                    left_state = msgspec.structs.replace(left_state, outcome=outcome)
        if left_state.settled:
            self._runner.settle(reads)
        group.settle(left_state)
        self._audit.update(group)
        store.save(self._settings.out, self.result())
        if left_state.run:
            self._observer.run_finished(group.result().runs[-1])

    def _work(self, plan: GroupPlan, group: GroupInProgress) -> Callable[[int], Result]:
        """Return what does the run with a number.

        Two runs that differ early end the others where they do: one after another because each goes further than the
        last, at once by comparing them as they go on.
        """
        settings, at_once = self._settings, len(plan.jobs.slots) > 1
        ends = at_once and (settings.fail_fast or settings.stepwise)
        abreast = Abreast(0.0 if settings.fail_fast else FIRST_S) if ends else None

        def run(number: int) -> Result:
            limits = Limits(abreast=abreast)
            planned = self._next_run(plan, group) if settings.stepwise and not at_once else None
            if planned is not None:
                self._observer.runs_planned(planned.total, least=planned.least)
                reference = group.record if planned.follows else None
                limits = Limits(reference, until=planned.until, same_length=not settings.fail_fast)
            return self._runner.run(number, plan.spec(number), limits, first=group.record)

        return run

    def _add(self, group: GroupInProgress, result: Result) -> Group:
        judged = self._audit.add(group, result)
        difference = judged.runs[-1].first_difference
        if difference is not None:
            self._observer.differs(difference.step)
        return judged

    def _fails_again(self, group: Group, more: bool, empty: bool) -> bool:
        """Return whether all runs of this recipe failed, the last two alike, so that more would not help.

        They do not help either if the runs are ``empty``: nothing was recorded, and nothing left them.
        """
        if len(group.runs) < 2:
            return False
        before, last = group.runs[-2:]
        failed = all(run.status in (Status.FAILED, Status.TIMEOUT) for run in group.runs)
        if not empty and not (failed and _failure(before) == _failure(last)):
            return False
        if more:
            runs, recipe = (before.id, last.id), group.recipe.name
            alike = RunsLeftNothing(recipe=recipe, runs=runs) if empty else RunsFailAlike(recipe=recipe, runs=runs)
            self._audit.stopped.append(alike)
        return True

    @property
    def code(self) -> Mapping[str, str]:
        """The user's source files that the runs loaded, as people name them, with their digests."""
        return self._audit.code

    @property
    def recording(self) -> Recording | None:
        """What the first finished run recorded, None if there is none."""
        return self._audit.recording

    def result(self, interrupted: bool = False) -> Audit:
        """Return the audit so far."""
        return self._audit.report(
            leftovers=self._runner.leftovers, warnings=self._runner.warnings, interrupted=interrupted
        )


def _left_nothing(result: Result) -> bool:
    """Whether a run recorded nothing, wrote no file and printed nothing."""
    outputs = result.record.outputs
    if result.run.status is not Status.NOT_RECORDED or outputs is None or result.record.parts:
        return False
    return not outputs.files and not any(one.count for one in (outputs.stdout, outputs.stderr) if one is not None)


def _failure(run: Run) -> tuple[object, ...]:
    """Return how a run failed: how it ended, and the class of its exception if its last line names one."""
    last = run.stderr_tail[-1] if run.stderr_tail else ""
    return run.status, run.exit_code, last.partition(":")[0]
