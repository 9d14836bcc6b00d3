"""Trials: each runs the training with a set of flags until enough is known about it."""

import copy
import shutil
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from detaudit.auditor import earlier_audits
from detaudit.auditor.bisect import costs, edited
from detaudit.auditor.bisect.costs import Cost, Timing
from detaudit.auditor.bisect.horizon import END, OneRun
from detaudit.auditor.bisect.trial_results import NONE, Flags, TrialOutcome, TrialResult
from detaudit.auditor.evidence import environment, event_logs
from detaudit.auditor.evidence.event_logs import display_path
from detaudit.auditor.judge.group import GroupInProgress
from detaudit.auditor.judge.run_status import stopped
from detaudit.auditor.runs.followed import Limits
from detaudit.auditor.runs.observer import Observer
from detaudit.auditor.runs.runner import Result, Runner
from detaudit.launch.plan import GroupPlan, Settings
from detaudit.launch.until import Until
from detaudit.model import Group, Run, RunRecord, Verdict
from detaudit.model.reasons import OutputsOpen

Plan: TypeAlias = Callable[[Flags, str], GroupPlan]
"""Returns the runs of a trial from its flags and its name."""


@dataclass
class Trial:
    """The runs of one set of flags so far.

    ``first`` is the first of those that match and got furthest; ``reached`` says how far each went, if that may differ.
    """

    plan: GroupPlan
    group: GroupInProgress
    first: Result | None = None
    reached: list[OneRun] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its name in the table."""
        return self.plan.recipe.name


class Trials:
    """Runs trainings with flags, and keeps the results. ``keep`` is called after each run.

    ``environment`` is that of the runs so far, of the first if others are done elsewhere; see environment.describe.
    """

    def __init__(
        self, settings: Settings, runner: Runner, plan: Plan, observer: Observer, keep: Callable[[], None]
    ) -> None:
        self._settings, self._runner, self._plan = settings, runner, plan
        self._observer, self._keep = observer, keep
        self._trials: dict[Flags, Trial] = {}
        self._code: dict[str, str] = {}
        self.environment: dict[str, Any] = environment.describe()
        self._elsewhere = False
        self._timings: list[Timing] = []  # in the order of the runs
        self.total_runs = 0

    @property
    def groups(self) -> tuple[Group, ...]:
        """All trials, in the order in which they started."""
        return tuple(trial.group.result() for trial in self._trials.values())

    def of(self, flags: Iterable[str]) -> Trial | None:
        """Return the trial of these flags, None if there is none."""
        return self._trials.get(frozenset(flags))

    @property
    def base(self) -> Result | None:
        """The first finished run of the trial without flags (of variations, of the control), None if there is none."""
        trial = self.of(NONE)
        return trial.first if trial else None

    @property
    def files(self) -> tuple[str, ...]:
        """The user's source files that the first run loaded, as people name them."""
        trial = self.of(NONE)
        if trial is None or trial.first is None:
            return ()
        loaded = {file for one in trial.first.processes if one.settings for file in one.settings.files}
        return tuple(sorted(display_path(file, trial.plan.spec(1).cwd) for file in loaded))

    @property
    def code(self) -> dict[str, str]:
        """These files with their digests, see ``Audit.code``."""
        files = self.files
        if not {*files} <= {*self._code}:
            self._code = earlier_audits.digests(self._settings.cwd, files)
        return self._code

    def named(self, name: str) -> Trial:
        """Return the trial with this name."""
        return next(trial for trial in self._trials.values() if trial.name == name)

    def ask(self, flags: Flags, runs: int) -> TrialResult:
        """See minimal_set.Ask: run until two runs differ, one fails, or this many match."""
        trial = self._begun(flags)
        self._announce(flags, runs)
        while self._open(trial, runs):
            self._run(trial)
        return self._finding(trial)

    def time_once(self, flags: Flags) -> None:
        """Run once more, for the time that it takes, however many runs there were."""
        trial = self._begun(flags)
        self._announce(flags, len(trial.group.result().runs) + 1)
        self._run(trial, follow=False, until=self._timed_until)

    @property
    def _timed_until(self) -> Until | None:
        """How far a run goes that is timed, None for its end."""
        return None

    def _announce(self, flags: Flags, runs: int) -> None:
        self._observer.group_started(self._trials[flags].name, runs)
        self._observer.trial_started(tuple(sorted(flags)), len(self._trials) - 1)

    def pace(self, flags: Flags) -> float | None:
        """Return the median time of a step, in seconds; None if no run did steps for long enough."""
        times = [run.step_s for run in self._runs_with(flags) if run.step_s is not None]
        return statistics.median(times) if times else None

    def cost(self, flags: Flags, bare: Flags) -> Cost | None:
        """Return what flags cost over some of them; see costs.cost."""
        return costs.cost(self._timings, flags, bare)

    def _runs_with(self, flags: Flags) -> Sequence[Run]:
        trial = self._trials.get(flags)
        return trial.group.result().runs if trial else ()

    def _begun(self, flags: Flags) -> Trial:
        if flags not in self._trials:
            plan = self._plan(flags, f"trial-{len(self._trials) + 1}")
            self._trials[flags] = Trial(plan, GroupInProgress(plan, self._settings.cwd))
        return self._trials[flags]

    def _open(self, trial: Trial, runs: int) -> bool:
        group = trial.group.result()
        return not trial.group.differs and not broken(group) and len(group.runs) < runs

    def _run(self, trial: Trial, *, follow: bool = True, until: Until | None = None) -> None:
        number = len(trial.group.result().runs) + 1
        spec = trial.plan.spec(number)
        self.total_runs += 1
        try:
            reference = trial.first.record if trial.first and follow else None
            result = self._runner.run(number, spec, Limits(reference, until=until))
        except KeyboardInterrupt:
            trial.group.add(stopped(number, spec), (), RunRecord())
            raise
        self._take(trial, result)
        self._timings.append(_timing(trial, result, fixed=self._settings.until is not None))
        if self.total_runs == 1:
            edited.note(self._settings.out, self._settings.cwd, spec.cwd, result.processes)
        self._keep()
        self._observer.run_finished(trial.group.result().runs[-1])

    def _take(self, trial: Trial, result: Result) -> None:
        trial.group.add(result.run, result.processes, result.record, place=result.place)
        if result.place is not None and not self._elsewhere:
            self.environment, self._elsewhere = copy.deepcopy(dict(result.place.described)), True
        environment.add_processes(self.environment, result.processes)
        matches = result.run.finished and trial.group.result().runs[-1].first_difference is None
        if matches and (trial.first is None or (result.run.through or END) > (trial.first.run.through or END)):
            trial.first = result

    def _finding(self, trial: Trial) -> TrialResult:
        group = trial.group.result()
        if trial.group.differs:
            first = group.first_difference
            found = next((run.first_difference for run in group.runs if first and run.id == first.runs[1]), None)
            return TrialResult(TrialOutcome.DIFFERS, len(group.runs), found.order if found else (), trial.name)
        if broken(group):
            return TrialResult(TrialOutcome.FAILS, len(group.runs), name=trial.name)
        return TrialResult(TrialOutcome.MATCHES, len(group.runs), name=trial.name)

    def restore(self, groups: Iterable[Group]) -> None:
        """Take in the trials of an earlier bisection from their event logs; runs that did not finish are removed."""
        for group in groups:
            trial = self._begun(self._requested(group))
            for run in group.runs:
                if run.counts and run.id == len(trial.group.result().runs) + 1:
                    self._take(trial, self._read(trial, run))
                    self.total_runs += 1
                else:
                    shutil.rmtree(trial.plan.spec(run.id).folder, ignore_errors=True)

    def _requested(self, group: Group) -> Flags:
        """Return the flags of a trial of an earlier bisection."""
        return frozenset(group.recipe.flags)

    def _read(self, trial: Trial, run: Run) -> Result:
        spec = trial.plan.spec(run.id)
        processes = event_logs.read_run(spec.folder)
        if run.through is not None:
            self._runner.ended_after(run.through, processes)
        record = self._runner.record(spec, processes, to_its_end=run.through is None)
        return Result(run, processes, record, place=self._runner.place(spec))


def broken(group: Group) -> bool:
    """Whether a trial is inconclusive: a run failed, or recorded nothing to compare."""
    if any(not run.counts for run in group.runs):
        return True
    if isinstance(group.reason, OutputsOpen):  # the trainings match
        return False
    return len(group.runs) > 1 and group.verdict is Verdict.INCONCLUSIVE


def _timing(trial: Trial, result: Result, *, fixed: bool) -> Timing:
    """Return how long a run took; ``fixed`` says that all are ended at one step, or after one time."""
    run, flags = result.run, frozenset(flag.id for flag in trial.plan.recipe.flags)
    whole = run.finished and (fixed or run.through is None)
    machine = result.place.id if result.place is not None else ""
    return Timing(flags, run.step_s, run.wall_s if whole else None, (run.steps, run.through), machine)
