"""Trials whose runs are ended once they got as far as the question asks; see horizon.Trainings."""

from collections.abc import Sequence

from detaudit.auditor.bisect.horizon import END, START, Length, OneRun
from detaudit.auditor.bisect.trial_results import NONE, Flags, TrialOutcome
from detaudit.auditor.bisect.trials import Trial, Trials, broken
from detaudit.auditor.runs.runner import Result
from detaudit.launch.until import Until
from detaudit.model import UNHOOKED, Difference, Stage, Status

FIRST_S = 10.0
"""The first run of all is ended after so many seconds of training."""


class LimitedTrials(Trials):
    """Runs trainings with flags through a step, or until they differ."""

    length: Length | None = None

    def runs(self, flags: Flags) -> Sequence[OneRun]:
        """See Trainings."""
        trial = self.of(flags)
        return trial.reached if trial is not None else ()

    def run(self, flags: Flags, through: int) -> None:
        """See Trainings. A run goes to its end if it does no steps, or is over before."""
        trial = self._begun(flags)
        self._announce(flags, len(trial.reached) + 1)
        self._run(trial, until=self._until(through))

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

    def takes_s(self, runs: int, through: int, whole: int) -> float:
        """Return about how many seconds it takes to run so many times through a step, and to the end."""
        if self.length is None:
            return 0.0
        steps, seconds = max(1, self.length.steps), self.length.seconds
        step_s = min(self.pace(NONE) or seconds / steps, seconds / steps)
        return runs * (seconds - max(0, steps - through) * step_s) + whole * seconds


def _reached(trial: Trial, furthest: int) -> OneRun:
    """Return how far the latest run of a trial went, whose matching runs before went as far as ``furthest``."""
    group = trial.group.result()
    run = group.runs[-1]
    through = END if run.through is None else run.through
    compared = min(through, furthest)
    found = run.first_difference
    if found is not None:
        step = found.step if _has_step(found) else compared
        return OneRun(TrialOutcome.DIFFERS, step, compared, found.order, trial.name)
    outcome = TrialOutcome.FAILS if broken(group) else TrialOutcome.MATCHES
    return OneRun(outcome, through, compared, name=trial.name)


def _has_step(found: Difference) -> bool:
    """Whether a difference shows in each run that gets to its step."""
    return not found.at_end and found.stage not in (*UNHOOKED, Stage.STEPS)
