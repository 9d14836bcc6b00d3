"""Trials of variations: runs of unlike environments, each compared with a control in which all is held still."""

from dataclasses import replace

from detaudit.auditor.bisect.minimal_set import NONE, Finding, Flags, Outcome
from detaudit.auditor.bisect.trials import Trial, Trials
from detaudit.model import Group, Run, Status

_FAILED = (Status.FAILED, Status.TIMEOUT, Status.NO_RECORD)


class VariedTrials(Trials):
    """Trials of which the one where nothing varies is the control; its first run is the first of every other one."""

    def failed(self, varied: Flags) -> Run | None:
        """Return the run that failed in a trial, None where there is none."""
        trial = self.of(varied)
        runs = trial.group.result().runs if trial else ()
        return next((run for run in runs if run.status in _FAILED), None)

    def _begun(self, flags: Flags) -> Trial:
        known = self.of(flags)
        trial = super()._begun(flags)
        control = self.of(NONE)
        if known is None and flags and control is not None and control.first is not None:
            self._take(trial, control.first)
        return trial

    def _asked_of(self, group: Group) -> Flags:
        """Return what varied in a trial that is over."""
        return frozenset(one.id for one in group.varied)

    def _finding(self, trial: Trial) -> Finding:
        """Return what came of a trial; where the control ends and a variation makes the training fail, it matters."""
        found = super()._finding(trial)
        varied = frozenset(one.id for one in trial.plan.varying.moving)
        if found.outcome is Outcome.FAILS and varied:
            return replace(found, outcome=Outcome.DIFFERS)
        return found
