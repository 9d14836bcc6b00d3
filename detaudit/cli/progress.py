"""The progress line, and a line for each run with ``--verbose``."""

import os
import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import click

from detaudit import redact
from detaudit.cli.screen import width
from detaudit.judge.policy import FIRST_S
from detaudit.launch import RunSpec
from detaudit.launch.plan import BOOTSTRAP
from detaudit.model import OutputDifference, Run
from detaudit.model.fact import about, count, duration, shortened
from detaudit.model.problems import errors
from detaudit.model.stage import STATUSES
from detaudit.model.warnings import RunRepeated
from detaudit.report.plain import line, row
from detaudit.report.terminal import filled
from detaudit.runner import Observer

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text


# What ``--verbose`` says about each run: how it is started, where its logs are, how it ended.


_OWN = "DETAUDIT_"
"""How the variables begin that the recorder reads."""


def started(name: str, spec: RunSpec) -> Iterator[str]:
    """Yield the command of a run, its working directory if it is another, what its environment changes, its logs."""
    yield f"{name}: {row(shlex.join(redact.command(spec.argv)))}"
    if spec.cwd != Path.cwd():
        yield f"  in: {row(str(spec.cwd))}"
    if spec.timeout is not None:
        yield f"  timeout: {duration(spec.timeout, 'g')}"
    changed = {key: value for key, value in _without_recorder(spec.env).items() if os.environ.get(key) != value}
    if pairs := [_assignment(key, value) for key, value in sorted(changed.items())]:
        yield f"  set: {row(' '.join(pairs))}"
    if unset := sorted(os.environ.keys() - spec.env.keys()):
        yield f"  unset: {row(' '.join(unset))}"
    if spec.slot.cpus:
        yield f"  CPUs: {', '.join(map(str, spec.slot.cpus))}"
    if spec.slot.devices:
        yield f"  devices: {', '.join(spec.slot.devices)}"
    yield f"  logs: {row(os.path.relpath(spec.folder))}"


def finished(name: str, run: Run) -> str:
    """Return how a run ended."""
    why = f" ({errors(run.errors)})" if run.errors else ""
    return row(f"{name}: {STATUSES[run.status]} after {duration(run.wall_s)}, {count(run.steps, 'step')}{why}")


def _without_recorder(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what loads the recorder, and what only it reads."""
    variables = {key: value for key, value in env.items() if not key.startswith(_OWN)}
    first, _, rest = variables.pop("PYTHONPATH", "").partition(os.pathsep)
    path = rest if first == str(BOOTSTRAP) else first + os.pathsep * bool(rest) + rest
    return {**variables, "PYTHONPATH": path} if path else variables


def _assignment(name: str, value: str) -> str:
    hidden = redact.HIDDEN if redact.is_secret(name) else shlex.quote(redact.text(value))
    return f"{name}={hidden}"


# The progress line on stderr: run k of n, step m of l, steps a second, loss, elapsed, remaining.


MOST_FLAGS = 2
"""Flags of a trial that are named."""

EVERY_S = 60.0
"""Seconds between two lines without a terminal, such as in the log of a CI system, which may end a job without any."""

_LEAST_IMPORTANT = ("rate", "loss", "tried", "elapsed")
"""Parts of the line that may be left out, in this order."""

WORTH_SAYING_S = FIRST_S
"""Seconds since the first run of a recipe began after which a difference is reported before the report."""


class ProgressLine(Observer):
    """One line, rewritten in place, or without a terminal a new one each minute; prints none of it if ``silent``.

    If it is ``verbose``, lines about each run stay above it.
    """

    def __init__(self, silent: bool, *, verbose: bool = False) -> None:
        self._silent, self._verbose = silent, verbose
        self._live: Live | None = None
        self._audit, self._recipe, self._runs, self._number, self._at_once = "", "", 0, 0, 1
        self._least = False  # there may be more runs
        self._started = 0.0
        self._took: list[float] = []
        self._step, self._of, self._loss = 0, 0, ""
        self._first, self._tried = (0, 0.0), ""
        self._since, self._differs = time.monotonic(), False
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
        self._audit, self._recipe, self._of = f"{name}, ", "", 0

    def group_started(self, recipe: str, runs: int) -> None:
        """See Observer."""
        if recipe != self._recipe:
            self._took, self._since, self._differs = [], time.monotonic(), False
        self._recipe, self._runs, self._tried = recipe, runs, ""

    def trial_started(self, flags: tuple[str, ...], tried: int) -> None:
        """See Observer."""
        with_ = f"with {shortened(flags, most=MOST_FLAGS)}" if flags else "without flags"
        self._tried = f"{with_}, {tried} tried before" if tried else with_

    def proof_started(self, runs: int, through: int, full_runs: int, seconds: float) -> None:
        """See Observer."""
        if seconds >= EVERY_S:
            short = f"{count(runs, 'run')} through step {through:,}, then " if runs else ""
            self._say(f"to prove the answer: {short}{count(full_runs, 'run')} to the end: {about(seconds)}")

    def only_outputs_differ(self, first: OutputDifference, seconds: float) -> None:
        """See Observer."""
        each = f": {about(seconds)} each" if seconds >= EVERY_S else ""
        self._say(f"{first.trainings_match()}; so each run goes to its end{each}")

    def stays_on(self, machine: str) -> None:
        """See Observer."""
        self._say(f"all runs are done on {line(machine)}, or on machines like it")

    def repeated(self, why: RunRepeated) -> None:
        """See Observer."""
        self._say(f"run {why.run} is done again without what earlier runs left: {shortened(why.files, why.more)}")

    def runs_planned(self, runs: int, least: bool) -> None:
        """See Observer."""
        self._took = self._took if least == self._least else []
        self._runs, self._least = runs, least

    def differs(self, step: int) -> None:
        """See Observer."""
        if not self._differs and time.monotonic() - self._since >= WORTH_SAYING_S:
            recipe = "without flags" if self._recipe == "none" else self._recipe
            self._say(f"{self._audit}{recipe}: run {self._number} differs from an earlier run by step {step:,}")
        self._differs = True

    def run_started(self, number: int, timeout: float | None) -> None:
        """See Observer."""
        self._number, self._started = number, time.monotonic()
        self._step, self._loss, self._first = 0, "", (0, 0.0)

    def run_prepared(self, number: int, spec: RunSpec) -> None:
        """See Observer."""
        if self._verbose:
            self._print(*started(self._name(number), spec))

    def at_once(self, runs: int) -> None:
        """See Observer."""
        self._at_once = runs

    def last_step(self, step: int) -> None:
        """See Observer."""
        self._of = step

    def progress(self, step: int, loss: float | None) -> None:
        """See Observer."""
        began = step < self._step  # what was counted before were calls of a model
        self._step, self._loss = step, "" if loss is None else f"{loss:.6g}"
        if step and (began or not self._first[0]):
            self._first = step, time.monotonic()
        if self._live is None and time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY_S
            self._say(self._text())

    def run_finished(self, run: Run) -> None:
        """See Observer."""
        if self._verbose:
            self._print(finished(self._name(run.id), run))
        self._took.append(run.wall_s)
        self._of = run.steps if run.finished else self._of

    def _say(self, text: str) -> None:
        """Print a line that stays, above the one that is rewritten."""
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)
        elif not self._silent:
            click.echo(text, err=True)

    def _print(self, *lines: str) -> None:
        """Print lines that the user asked for."""
        text = "\n".join(filled(line, width(sys.stderr)) for line in lines)
        if self._live is not None:
            self._say(text)
        else:
            click.echo(text, err=True)

    def _name(self, number: int) -> str:
        more = "+" if self._least and number > 1 else ""
        total = f" of {self._runs:,}{more}" if number <= self._runs else ""  # instrumented runs are numbered on
        return f"{self._audit}{self._recipe}: run {number:,}{total}"

    def _line(self) -> "Text":
        from rich.text import Text

        columns = self._live.console.width if self._live is not None else None
        return Text(self._text(columns), no_wrap=True, overflow="ellipsis")

    def _text(self, columns: int | None = None) -> str:
        """Return what is known of the run under way, what matters least left out if it does not fit."""
        parts = self._parts()
        for least in _LEAST_IMPORTANT:
            if columns is not None and len(_joined(parts)) > columns:
                parts.pop(least, "")
        if columns is not None and len(_joined(parts)) > columns:
            parts["left"] = parts.get("left", "").split(" for ")[0]
        return _joined(parts)

    def _parts(self) -> dict[str, str]:
        """Return what is known of the run under way, by the names of its parts."""
        if not self._number:
            return {}
        elapsed, rate = time.monotonic() - self._started, self._steps_per_second()
        most = "at most " if self._least else ""  # it may be over before
        total = f" of {most}{self._of:,}" if self._of >= self._step and self._of else ""
        at_once = f", {self._at_once} at once" if self._at_once > 1 else ""
        left, unit = self._left(elapsed, rate), "run" if self._least else "recipe"
        seconds = "" if left is None else about(left)
        seconds = seconds.replace("about ", most) if most else seconds
        return {
            "run": f"{self._name(self._number)}{at_once}",
            "tried": self._tried,
            "step": f"step {self._step:,}{total}",
            "rate": f"{_rate(rate)} steps/s" if rate else "",
            "loss": f"loss {self._loss}" if self._loss else "",
            "elapsed": duration(elapsed, ".0f"),
            "left": f"{seconds} left for this {unit}" if seconds else "",
        }

    def _steps_per_second(self) -> float:
        """Return how many steps the run under way does, 0 if that was not watched for a second."""
        steps, seconds = self._step - self._first[0], time.monotonic() - self._first[1]
        return steps / seconds if self._first[0] and seconds >= 1 else 0.0

    def _left(self, elapsed: float, rate: float) -> float | None:
        """Return the seconds that the runs of this recipe still take, None if that is not known."""
        mean = sum(self._took) / len(self._took) if self._took and not self._least else None
        own = (self._of - self._step) / rate if rate and self._of >= self._step else None
        if own is None:
            own = max(0.0, mean - elapsed) if mean is not None else None
        if own is None or self._least:
            return own
        more = max(0, self._runs - self._number)
        return own + (elapsed + own if mean is None else mean) * more / self._at_once


def _joined(parts: dict[str, str]) -> str:
    return "  ".join(filter(None, parts.values()))


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"
