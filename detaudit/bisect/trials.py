"""Sets of flags answered by runs, which are kept for a resumption."""

import copy
import hashlib
import json
import shutil
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from detaudit import store
from detaudit.ahead import Ahead
from detaudit.bisect import costs
from detaudit.bisect.costs import Cost, Timing
from detaudit.config.options import Until
from detaudit.errors import DetauditError, UsageError
from detaudit.judge.group import GroupInProgress
from detaudit.judge.policy import END, NONE, START, Flags, Length, OneRun, TrialOutcome, TrialResult
from detaudit.launch.plan import GroupPlan, Settings
from detaudit.model import UNHOOKED, Difference, Group, Run, Stage, Status, Verdict
from detaudit.model.problems import Interrupted, OutputsOpen
from detaudit.notebooks.cells import code_of
from detaudit.runner import Limits, Observer, Result, Runner, described
from detaudit.runs import environment, log
from detaudit.runs.inputs import Inputs
from detaudit.runs.log import Process, loaded_files

# Notice that a script was edited between the start of a bisection and its resumption.


FILE = "sources.json"


def note(out: Path, cwd: Path, ran_in: Path, processes: Iterable[Process]) -> None:
    """Keep the digests of the user's source files that the first run loaded, which ``ran_in`` a copy of ``cwd``."""
    digests = {str(cwd / file): "" for file in sorted(loaded_files(processes, ran_in))}
    store.write(out / FILE, json.dumps({file: _digest(file) for file in digests}, indent=1).encode())


def refuse_edited(out: Path) -> None:
    """Raise UsageError if one of these files is not what it was."""
    try:
        noted = json.loads((out / FILE).read_bytes())
    except (OSError, ValueError):
        return  # no run had finished
    known: Mapping[str, object] = noted if isinstance(noted, dict) else {}
    edited = [file for file, digest in known.items() if _digest(file) != digest]
    if edited:
        more = f" and {len(edited) - 1} more" * (len(edited) > 1)
        raise UsageError(
            f"cannot resume: {edited[0]}{more} changed since this bisection began, and its runs are of the old version",
            "Start it again without --resume, or restore the file.",
        )


def _digest(file: str) -> str:
    try:
        return hashlib.blake2b(code_of(Path(file)), digest_size=16).hexdigest()
    except (OSError, ValueError):
        return ""


# Trials: each runs the training with a set of flags until enough is known about it.


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

    ``ahead`` does the runs that are needed next while the results of others are looked at. ``environment`` is that of
    the runs so far, of the first if others are done elsewhere; see environment.describe.
    """

    def __init__(
        self,
        settings: Settings,
        runner: Runner,
        plan: Plan,
        observer: Observer,
        keep: Callable[[], None],
        ahead: Ahead,
    ) -> None:
        self._settings, self._runner, self._plan = settings, runner, plan
        self._observer, self._keep, self._ahead = observer, keep, ahead
        self._trials: dict[Flags, Trial] = {}
        self._inputs, self._taken = Inputs(settings.cwd, settings.target.words), False
        self.environment: dict[str, Any] = described(settings)
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
        return tuple(sorted(loaded_files(trial.first.processes, trial.plan.spec(1).cwd)))

    @property
    def inputs(self) -> Inputs:
        """What the first run loaded and read."""
        trial = self.of(NONE)
        if not self._taken and trial is not None and trial.first is not None:
            self._taken = True
            self._inputs.take(trial.first.processes, trial.plan.spec(1).cwd)
        return self._inputs

    def named(self, name: str) -> Trial:
        """Return the trial with this name."""
        return next(trial for trial in self._trials.values() if trial.name == name)

    def ask(self, flags: Flags, runs: int) -> TrialResult:
        """See minimal_set.Ask: run until two runs differ, one fails, or this many match."""
        trial = self._begun(flags)
        self._announce(flags, runs)
        while self._open(trial, runs):
            self._run(trial, more=runs - len(trial.group.result().runs) - 1)
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

    def _run(self, trial: Trial, *, follow: bool = True, until: Until | None = None, more: int = 0) -> None:
        """Run once more; so many ``more`` go as far if this one matches. Raises DetauditError if no match can count."""
        number = len(trial.group.result().runs) + 1
        spec = trial.plan.spec(number)

        def run(one: int) -> Result:
            reference = trial.first.record if trial.first and follow else None
            return self._runner.run(one, trial.plan.spec(one), Limits(reference, until=until), first=trial.group.record)

        self.total_runs += 1
        try:
            result = self._ahead.result(
                (trial.name, follow, until), number, more, run, lambda one: trial.plan.spec(one).folder
            )
        except KeyboardInterrupt:
            trial.group.add_interrupted(number, spec)
            raise
        self._take(trial, result)
        if not self._open(trial, number + 1):
            self._ahead.end()
        if not follow or len(trial.plan.jobs.slots) == 1:  # others at once slow a run down
            self._timings.append(_timing(trial, result, fixed=self._settings.until is not None))
        if self.total_runs == 1:
            note(self._settings.out, self._settings.cwd, spec.cwd, result.processes)
        self._keep()
        self._observer.run_finished(trial.group.result().runs[-1])
        if trial.group.crowded is not None:
            self._ahead.end()
            raise DetauditError(trial.group.crowded.text(), "`--jobs auto` does as many at once as the cores allow.")

    def _take(self, trial: Trial, result: Result) -> None:
        trial.group.add(result.run, result.processes, result.record, result.threads, result.machine)
        if result.machine is not None and not self._elsewhere:
            self.environment, self._elsewhere = copy.deepcopy(dict(result.machine.described)), True
        environment.add_processes(self.environment, result.processes)
        matches = result.run.finished and trial.group.result().runs[-1].first_difference is None
        if matches and (trial.first is None or (result.run.through or END) > (trial.first.run.through or END)):
            trial.first = result

    def _finding(self, trial: Trial) -> TrialResult:
        group = trial.group.result()
        if trial.group.differs:
            first = group.first_difference
            difference = next((run.first_difference for run in group.runs if first and run.id == first.runs[1]), None)
            return TrialResult(
                TrialOutcome.DIFFERS, len(group.runs), difference.order if difference else (), trial.name
            )
        if broken(group):
            return TrialResult(TrialOutcome.FAILS, len(group.runs), name=trial.name)
        return TrialResult(TrialOutcome.MATCHES, len(group.runs), name=trial.name)

    def restore(self, groups: Iterable[Group]) -> None:
        """Take in the trials of an earlier bisection from their event logs; runs that did not finish are removed."""
        for group in groups:
            trial = self._begun(self._requested(group))
            for run in group.runs:
                interrupted = any(isinstance(error, Interrupted) for error in run.errors)
                if run.counts and not interrupted and run.id == len(trial.group.result().runs) + 1:
                    self._take(trial, self._read(trial, run))
                    self.total_runs += 1
                else:
                    shutil.rmtree(trial.plan.spec(run.id).folder, ignore_errors=True)

    def _requested(self, group: Group) -> Flags:
        """Return the flags of a trial of an earlier bisection."""
        return frozenset(group.recipe.flags)

    def _read(self, trial: Trial, run: Run) -> Result:
        spec = trial.plan.spec(run.id)
        processes = log.read_run(spec.folder)
        if run.through is not None:
            self._runner.ended_after(run.through, processes)
        record = self._runner.record(spec, processes, to_its_end=run.through is None)
        return Result(run, processes, record, machine=self._runner.machine(spec))


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
    finished = run.finished and (fixed or run.through is None)
    machine = result.machine.id if result.machine is not None else ""
    return Timing(flags, run.step_s, run.wall_s if finished else None, (run.steps, run.through), machine)


# Trials of variations: runs in different environments, each compared with a control in which all is pinned.


_FAILED = (Status.FAILED, Status.TIMEOUT, Status.NOT_RECORDED)


class ControlledTrials(Trials):
    """Trials in which the one where nothing varies is the control; its first run is the first of every other one."""

    def failed(self, varied: Flags) -> Run | None:
        """Return the run that failed in a trial, None if there is none."""
        trial = self.of(varied)
        runs = trial.group.result().runs if trial else ()
        return next((run for run in runs if run.status in _FAILED), None)

    def _begun(self, flags: Flags) -> Trial:
        known = self.of(flags)
        trial = super()._begun(flags)
        if known is None and flags and self.base is not None:
            self._take(trial, self.base)
        return trial

    def _requested(self, group: Group) -> Flags:
        """Return what varied in a trial of an earlier bisection."""
        return frozenset(one.id for one in group.varied)

    def _finding(self, trial: Trial) -> TrialResult:
        """Return the result of a trial; a variation has an effect if only it makes the training fail."""
        finding = super()._finding(trial)
        varied = frozenset(one.id for one in trial.plan.varying.varying)
        if finding.outcome is TrialOutcome.FAILS and varied:
            return replace(finding, outcome=TrialOutcome.DIFFERS)
        return finding


# Trials whose runs are ended once they got as far as the question asks; see horizon.Trainings.


FIRST_S = 10.0
"""The first run of all is ended after so many seconds of training.

With 5 s, as of policy.FIRST_S, simulated bisections of what begins at half a training cost a fifth more.
"""


class LimitedTrials(Trials):
    """Runs trainings with flags through a step, or until they differ."""

    length: Length | None = None

    def runs(self, flags: Flags) -> Sequence[OneRun]:
        """See Trainings."""
        trial = self.of(flags)
        return trial.reached if trial is not None else ()

    def run(self, flags: Flags, through: int, more: int = 0) -> None:
        """See Trainings. A run goes to its end if it does no steps, or is over before."""
        trial = self._begun(flags)
        self._announce(flags, len(trial.reached) + 1)
        self._run(trial, until=self._until(through), more=more)

    @property
    def _timed_until(self) -> Until | None:
        """As far as the first run of all went: that has enough steps to time one."""
        runs = [run for trial in self._trials.values() for run in trial.reached]
        ended = any(run.through < END for run in runs if run.outcome is TrialOutcome.MATCHES)
        return self._until(START) if ended and self._settings.until is None else None

    def _until(self, through: int) -> Until | None:
        if through == END:
            return None
        if through == START:
            return Until(seconds=FIRST_S, in_training=True)
        sampled = self.base is not None and self.base.record.sampled
        # Large weights have a digest at powers of two.
        return Until(step=1 << (through - 1).bit_length() if sampled else through)

    def _take(self, trial: Trial, result: Result) -> None:
        furthest = max((run.through for run in trial.reached if run.outcome is TrialOutcome.MATCHES), default=-1)
        super()._take(trial, result)
        if result.run.status is Status.OK and self.length is None:
            self.length = Length(result.run.steps, result.run.wall_s)
        trial.reached.append(_reached(trial, furthest))

    def takes_s(self, runs: int, through: int, complete: int) -> float:
        """Return about how many seconds it takes to run so many times through a step, and to the end."""
        if self.length is None:
            return 0.0
        steps, seconds = max(1, self.length.steps), self.length.seconds
        step_s = min(self.pace(NONE) or seconds / steps, seconds / steps)
        return runs * (seconds - max(0, steps - through) * step_s) + complete * seconds


def _reached(trial: Trial, furthest: int) -> OneRun:
    """Return how far the latest run of a trial went, whose matching runs before went as far as ``furthest``."""
    group = trial.group.result()
    run = group.runs[-1]
    through = END if run.through is None else run.through
    compared = min(through, furthest)
    first_difference = run.first_difference
    if first_difference is not None:
        step = first_difference.step if _has_step(first_difference) else compared
        return OneRun(TrialOutcome.DIFFERS, step, compared, first_difference.order, trial.name)
    outcome = TrialOutcome.FAILS if broken(group) else TrialOutcome.MATCHES
    return OneRun(outcome, through, compared, name=trial.name)


def _has_step(difference: Difference) -> bool:
    """Whether a difference shows in each run that gets to its step."""
    return not difference.at_end and difference.stage not in (*UNHOOKED, Stage.STEPS)
