"""The progress line on stderr: run k of n, step m of l, steps a second, loss, elapsed, remaining."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

import click

from detaudit.auditor.runs.observer import Observer
from detaudit.model import Run
from detaudit.model.number import count
from detaudit.report.messages.wording import shortened

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text


MOST_FLAGS = 2
"""Flags of a trial that are named."""

EVERY_S = 60.0
"""Seconds between two lines without a terminal, such as in the log of a CI system, which may end a job without any."""


class ProgressLine(Observer):
    """One line, rewritten in place, or without a terminal a new one each minute; prints nothing if ``silent``."""

    def __init__(self, silent: bool) -> None:
        self._silent = silent
        self._live: Live | None = None
        self._audit, self._recipe, self._runs, self._number = "", "", 0, 0
        self._started = 0.0
        self._took: list[float] = []
        self._step, self._of, self._loss = 0, 0, ""
        self._first, self._tried = (0, 0.0), ""
        self._next = time.monotonic() + EVERY_S

    def __enter__(self) -> "ProgressLine":
        if not self._silent and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True)
            self._live = Live(get_renderable=self._line, console=console, transient=True, refresh_per_second=8)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def audit_started(self, name: str) -> None:
        """See Observer."""
        self._audit = f"{name}, "

    def group_started(self, recipe: str, runs: int) -> None:
        """See Observer."""
        self._took = [] if recipe != self._recipe else self._took
        self._recipe, self._runs, self._tried = recipe, runs, ""

    def trial_started(self, flags: tuple[str, ...], tried: int) -> None:
        """See Observer."""
        with_ = f"with {shortened(flags, most=MOST_FLAGS)}" if flags else "without flags"
        self._tried = f"{with_}, {tried} tried before" if tried else with_

    def proof_started(self, runs: int, through: int, whole: int, seconds: float) -> None:
        """See Observer."""
        if not self._silent and seconds >= EVERY_S:
            short = f"{count(runs, 'run')} through step {through:,}, then " if runs else ""
            click.echo(f"to prove the answer: {short}{count(whole, 'run')} to the end: {_about(seconds)}", err=True)

    def run_started(self, number: int, timeout: float | None) -> None:
        """See Observer."""
        self._number, self._started = number, time.monotonic()
        self._step, self._loss, self._first = 0, "", (0, 0.0)

    def last_step(self, step: int) -> None:
        """See Observer."""
        self._of = step

    def progress(self, step: int, loss: float | None) -> None:
        """See Observer."""
        self._step, self._loss = step, "" if loss is None else f"{loss:.6g}"
        if step and not self._first[0]:
            self._first = step, time.monotonic()
        if self._live is None and not self._silent and time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY_S
            click.echo(self._text(), err=True)

    def run_finished(self, run: Run) -> None:
        """See Observer."""
        self._took.append(run.wall_s)
        self._of = run.steps if run.finished else self._of

    def _line(self) -> "Text":
        from rich.text import Text

        return Text(self._text(), no_wrap=True, overflow="ellipsis")

    def _text(self) -> str:
        if not self._number:
            return ""
        elapsed, rate = time.monotonic() - self._started, self._steps_per_second()
        total = f" of {self._of}" if self._of >= self._step and self._of else ""
        parts = [f"{self._audit}{self._recipe}: run {self._number} of {self._runs}", self._tried]
        parts += [f"step {self._step}{total}", f"{rate:.3g} steps/s" if rate else ""]
        parts += [f"loss {self._loss}" if self._loss else "", f"{elapsed:.0f} s"]
        left = self._left(elapsed, rate)
        parts.append(f"{_about(left)} left for this recipe" if left is not None else "")
        return "  ".join(filter(None, parts))

    def _steps_per_second(self) -> float:
        """Return how many steps the run under way does, 0 if that was not watched for a second."""
        steps, seconds = self._step - self._first[0], time.monotonic() - self._first[1]
        return steps / seconds if self._first[0] and seconds >= 1 else 0.0

    def _left(self, elapsed: float, rate: float) -> float | None:
        """Return the seconds that the runs of this recipe still take, None if that is not known."""
        mean = sum(self._took) / len(self._took) if self._took else None
        own = (self._of - self._step) / rate if rate and self._of >= self._step else None
        if own is None:
            own = max(0.0, mean - elapsed) if mean is not None else None
        if own is None:
            return None
        return own + (elapsed + own if mean is None else mean) * (self._runs - self._number)


def _about(seconds: float) -> str:
    if seconds < 2 * EVERY_S:
        return f"about {seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"about {hours} h {minutes} min" if hours else f"about {minutes} min"
