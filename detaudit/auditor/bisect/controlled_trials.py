"""Trials of variations: runs in different environments, each compared with a control in which all is pinned."""

from dataclasses import replace

from detaudit.auditor.bisect.trial_results import Flags, TrialOutcome, TrialResult
from detaudit.auditor.bisect.trials import Trial, Trials
from detaudit.model import Group, Run, Status

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
        found = super()._finding(trial)
        varied = frozenset(one.id for one in trial.plan.varying.varying)
        if found.outcome is TrialOutcome.FAILS and varied:
            return replace(found, outcome=TrialOutcome.DIFFERS)
        return found
