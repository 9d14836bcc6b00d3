"""The progress line on stderr: run k of n, step, loss, elapsed, remaining."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

import click

from detaudit.auditor.runs.observer import Observer
from detaudit.model import Run
from detaudit.model.number import count

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text


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
        self._step, self._loss = 0, ""
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
        self._recipe, self._runs, self._took = recipe, runs, []

    def proof_started(self, runs: int, through: int, whole: int, seconds: float) -> None:
        """See Observer."""
        if not self._silent and seconds >= EVERY_S:
            short = f"{count(runs, 'run')} through step {through:,}, then " if runs else ""
            click.echo(f"to prove the answer: {short}{count(whole, 'run')} to the end: {_about(seconds)}", err=True)

    def run_started(self, number: int, timeout: float | None) -> None:
        """See Observer."""
        self._number, self._started = number, time.monotonic()
        self._step, self._loss = 0, ""

    def progress(self, step: int, loss: float | None) -> None:
        """See Observer."""
        self._step, self._loss = step, "" if loss is None else f"{loss:.6g}"
        if self._live is None and not self._silent and time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY_S
            click.echo(self._text(), err=True)

    def run_finished(self, run: Run) -> None:
        """See Observer."""
        self._took.append(run.wall_s)

    def _line(self) -> "Text":
        from rich.text import Text

        return Text(self._text(), no_wrap=True, overflow="ellipsis")

    def _text(self) -> str:
        if not self._number:
            return ""
        elapsed = time.monotonic() - self._started
        parts = [f"{self._audit}{self._recipe}: run {self._number} of {self._runs}", f"step {self._step}"]
        parts += [f"loss {self._loss}"] if self._loss else []
        parts.append(f"{elapsed:.0f} s")
        if self._took:
            mean = sum(self._took) / len(self._took)
            remaining = max(0.0, mean - elapsed) + mean * (self._runs - self._number)
            parts.append(f"about {remaining:.0f} s left for this recipe")
        return "  ".join(parts)


def _about(seconds: float) -> str:
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"about {hours} h {minutes} min" if hours else f"about {minutes} min"
