"""Read the event logs of a run that is still running."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from detaudit import wire
from detaudit.model import FITTED, Stage, is_inference
from detaudit.runs.log import logs
from detaudit.runs.log_records import DECODER, UNREADABLE, Bye, Framework, Hello, Line, NameLine, TrainingLine
from detaudit.runs.log_rows import ROW, STAGES, Numbers, Raw, rows_of, size_of, text_of


class Event(NamedTuple):
    """A row of an event log."""

    fw: str
    lane: int
    step: int
    stage: Stage
    digest: str
    value: float | None


class News(NamedTuple):
    """The lines and rows that were written to an event log since it was last looked at, and what numbers stand for."""

    lines: list[Line]
    rows: Raw
    numbers: Numbers

    def events(self, last: int = 0) -> Iterator[Event]:
        """Yield the rows, or the ``last`` of them."""
        for step, training, name, stage, flags, digest, value in self.rows[-last:].tolist():
            key, text = self.numbers.trainings[training], self.numbers.names[name] if name else None
            shown = value if flags & wire.HAS_VALUE else None
            yield Event(*key, step, STAGES[stage], text_of(digest, text), shown)


class _Log:
    """How far an event log was read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbers = Numbers()
        self._offset = self._rows = 0

    def new(self) -> News:
        """Return the complete lines and rows since the last call; lines that cannot be decoded are skipped."""
        end = size_of(rows_of(self._path)) // ROW.itemsize  # before the lines: they come first
        lines = []
        for raw in self._read(self._path, self._offset).splitlines(keepends=True):
            if raw.endswith(b"\n"):
                self._offset += len(raw)
                with contextlib.suppress(*UNREADABLE):
                    lines.append(DECODER.decode(raw))
        for line in lines:
            if isinstance(line, TrainingLine | NameLine):
                self._numbers.take(line)
        rows = np.frombuffer(self._read(rows_of(self._path), self._rows * ROW.itemsize, end), ROW)
        rows = rows[: self._numbers.readable(rows)]
        self._rows += len(rows)
        return News(lines, rows, self._numbers)

    def _read(self, path: Path, start: int, end: int | None = None) -> bytes:
        with contextlib.suppress(OSError), path.open("rb") as file:
            file.seek(start)
            return file.read(-1 if end is None else max(0, end * ROW.itemsize - start))
        return b""


class Growing:
    """The event logs of a run that is still running."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / wire.LOGS
        self._logs: dict[Path, _Log] = {}

    def new(self) -> Iterator[tuple[Path, News]]:
        """Yield each event log with what was written to it since the last call."""
        for path in logs(self._folder):
            if path not in self._logs:
                self._logs[path] = _Log(path)
            yield path, self._logs[path].new()


_LAST = 8
"""Rows of a look at a growing event log from which it is known how far it got."""


def rank(news: News, world: int) -> int | None:
    """Return the rank of a process by the first line of its event log, None if it is not one of ``world``."""
    first = news.lines[0] if news.lines else None
    return first.rank if isinstance(first, Hello) and first.world == world else None


class Tail:
    """How far a process got that is still running: its last step and loss.

    ``trained`` is its last step that is neither a fit nor a call; ``world`` is the number of ranks that it knows of. It
    ``may_train`` if it imported a framework and has not ended. ``attempt`` is that of a rank, None of other processes.
    """

    def __init__(self) -> None:
        self.step = self.trained = self.calls = 0
        self.loss: float | None = None
        self.world = 1
        self.attempt: int | None = None
        self.may_train = False

    def take(self, news: News) -> None:
        """Add what is new in an event log."""
        for line in news.lines:
            match line:
                case Hello():
                    self.world = line.world or 1
                    self.attempt = line.attempt if line.rank is not None else None
                case Framework():
                    self.may_train = True
                case Bye():
                    self.may_train = False
                case _:
                    pass
        for event in news.events(_LAST):
            if not is_inference(event.fw) and event.fw not in FITTED:
                self.trained = max(self.trained, event.step)
            if is_inference(event.fw):  # a training may follow, whose steps count from 1
                self.calls = max(self.calls, event.step)
            else:
                self.step = max(self.step, event.step)
            self.loss = self.loss if event.value is None else event.value
