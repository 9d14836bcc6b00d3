"""The story of one audit: plan, launch, compare, localise; saved after every run."""

from collections.abc import Sequence
from typing import Any

import msgspec

from detaudit.auditor import advice, environment, store, traces, verdict
from detaudit.auditor.group import GroupInProgress
from detaudit.auditor.judge import compared, judge, stopped
from detaudit.auditor.outside import Watch
from detaudit.errors import StorageError, WorkspaceError
from detaudit.launch import Launcher, RunSpec, refusals
from detaudit.launch.carryover import CarryOver
from detaudit.launch.plan import GroupPlan, Settings, plan_group, workspace_for
from detaudit.model import SCHEMA_VERSION, Audit, Group, Run, Verdict


class Observer:
    """Is told how an audit goes; does nothing by itself."""

    def group_started(self, recipe: str, runs: int) -> None:
        """Take notice that the runs of a recipe begin."""

    def run_started(self, number: int, timeout: float | None) -> None:
        """Take notice that a run begins; ``timeout`` is in seconds."""

    def progress(self, step: int, loss: float | None) -> None:
        """Take notice of how far the run under way got."""

    def run_finished(self, run: Run) -> None:
        """Take notice of a run that ended."""


class Auditor:
    """Carries out one audit. After an interruption, ``result`` holds what finished before it."""

    def __init__(self, settings: Settings, launcher: Launcher, observer: Observer | None = None) -> None:
        self._settings, self._launcher, self._observer = settings, launcher, observer or Observer()
        self._space = workspace_for(settings)
        self._carry = None if settings.isolate else CarryOver(settings.cwd, settings.out)
        self._environment: dict[str, Any] = environment.describe()
        self._groups: list[Group] = []
        self._carried: list[str] = []
        self._stopped: list[str] = []

    def run(self) -> Audit:
        """Audit every recipe, one after another, and return what that shows."""
        store.prepare(self._settings.out)
        for recipe in self._settings.recipes:
            refused = refusals.refused(recipe.flags, self._settings.target)
            plan = plan_group(self._settings, recipe, self._space, refused)
            self._observer.group_started(recipe.name, len(plan.specs))
            try:
                self._run_group(plan)
            except (StorageError, WorkspaceError) as error:
                if not any(group.runs for group in self._groups):
                    raise
                self._stopped.append(f"{error.message}. {error.cure}")
                break
        return self.result()

    def _run_group(self, plan: GroupPlan) -> None:
        group = GroupInProgress(plan, self._settings.cwd)
        self._groups.append(group.result())
        for number, spec in enumerate(plan.specs, 1):
            try:
                run, processes, streams = self._run(number, spec)
            except KeyboardInterrupt:
                group.add(stopped(number, spec), (), ())
                self._groups[-1] = group.result()
                raise
            group.add(run, processes, streams)
            environment.add_processes(self._environment, processes)
            self._groups[-1] = group.result()
            store.save(self._settings.out, self.result())
            self._observer.run_finished(self._groups[-1].runs[-1])
            if group.differs and self._settings.fail_fast:
                break

    def _run(self, number: int, spec: RunSpec) -> tuple[Run, Sequence[traces.Process], Sequence[traces.Stream]]:
        self._observer.run_started(number, spec.timeout)
        tail = traces.Tail(spec.live)

        def tick() -> None:
            tail.read()
            self._observer.progress(tail.step, tail.loss)

        with self._space.fresh():
            if self._carry is not None:
                self._carry.before_run()
            watch = self._watch(spec)
            outcome = self._launcher.launch(spec, tick)
            if self._carry is not None:
                self._carried += self._carry.after_run()
            outside = watch.look(spec.folder)
        processes = traces.read_run(spec.folder)
        run = judge(number, spec, outcome, processes, outside)
        return run, processes, compared(spec, processes, outside)

    def _watch(self, spec: RunSpec) -> Watch:
        settings = self._settings
        paths = [self._space.inside(path) for path in settings.artifacts]
        return Watch(settings.loss_pattern, paths, spec.cwd, settings.out)

    def result(self, interrupted: bool = False) -> Audit:
        """Return the audit as it stands."""
        settings, groups = self._settings, tuple(self._groups)
        unwatched = self._carry is not None and not self._carry.watching
        warnings = advice.warnings(groups, sorted(set(self._carried)), unwatched=unwatched)
        unfinished = self._stopped or len(groups) < len(settings.recipes)
        verdicts = [*(group.verdict for group in groups), *([Verdict.INCONCLUSIVE] if unfinished else [])]
        return Audit(
            schema_version=SCHEMA_VERSION,
            command=settings.command,
            environment=msgspec.to_builtins(self._environment),
            verdict=verdict.of_groups(verdicts),
            groups=groups,
            warnings=(*warnings, *self._stopped),
            next_steps=advice.next_steps(settings, groups),
            interrupted=interrupted,
        )
