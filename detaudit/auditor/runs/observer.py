"""The progress of an audit, as calls that do nothing by default."""

from detaudit.launch import RunSpec
from detaudit.model import OutputDifference, Run


class Observer:
    """Is notified of the progress of an audit; does nothing by itself."""

    def audit_started(self, name: str) -> None:
        """Note that one of several audits begins."""

    def group_started(self, recipe: str, runs: int) -> None:
        """Note that the runs of a recipe begin."""

    def proof_started(self, runs: int, through: int, whole: int, seconds: float) -> None:
        """Note that an answer needs so many more runs through a step and to the end, and about how long they take."""

    def only_outputs_differ(self, first: OutputDifference, seconds: float) -> None:
        """Note that the trainings match and what left the runs differs, so that each run goes to its end."""

    def trial_started(self, flags: tuple[str, ...], tried: int) -> None:
        """Note which flags are tried next, and how many sets of flags were before."""

    def runs_planned(self, runs: int, least: bool) -> None:
        """Note how many runs this recipe has; at ``least`` so many, if each goes further than the last."""

    def differs(self, step: int) -> None:
        """Note that the run under way differs from another, by this step."""

    def at_once(self, runs: int) -> None:
        """Note how many runs are under way, now that one more began."""

    def stays_on(self, machine: str) -> None:
        """Note the machine that does all runs, or others like it."""

    def last_step(self, step: int) -> None:
        """Note the step after which the run under way will be ended."""

    def run_started(self, number: int, timeout: float | None) -> None:
        """Note that a run begins; ``timeout`` is in seconds."""

    def run_prepared(self, number: int, spec: RunSpec) -> None:
        """Note how the run that begins is started."""

    def progress(self, step: int, loss: float | None) -> None:
        """Note how far the run under way got."""

    def run_finished(self, run: Run) -> None:
        """Note a run that ended."""


class OfLatest(Observer):
    """Passes on how far a run got while it is the latest of those ``under_way``."""

    def __init__(self, number: int, under_way: set[int], observer: Observer) -> None:
        self._number, self._under_way, self._observer = number, under_way, observer

    def last_step(self, step: int) -> None:
        """See Observer."""
        self._observer.last_step(step)

    def progress(self, step: int, loss: float | None) -> None:
        """See Observer."""
        if self._number == max(self._under_way):
            self._observer.progress(step, loss)
