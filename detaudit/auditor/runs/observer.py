"""Who watches an audit: progress enters the core as calls that do nothing by default."""

from detaudit.model import Run


class Observer:
    """Is told how an audit goes; does nothing by itself."""

    def audit_started(self, name: str) -> None:
        """Take notice that one of several audits begins."""

    def group_started(self, recipe: str, runs: int) -> None:
        """Take notice that the runs of a recipe begin."""

    def run_started(self, number: int, timeout: float | None) -> None:
        """Take notice that a run begins; ``timeout`` is in seconds."""

    def progress(self, step: int, loss: float | None) -> None:
        """Take notice of how far the run under way got."""

    def run_finished(self, run: Run) -> None:
        """Take notice of a run that ended."""
