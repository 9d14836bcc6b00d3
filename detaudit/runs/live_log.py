"""Read the event logs of a run that is still running."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from detaudit import wire
from detaudit.model import FITTED, is_inference
from detaudit.runs.log import logs
from detaudit.runs.log_records import DECODER, UNREADABLE, Bye, Event, Framework, Hello


class Growing:
    """The event logs of a run that is still running."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / wire.LOGS
        self._offsets: dict[Path, int] = {}

    def new(self) -> Iterator[tuple[Path, list[bytes]]]:
        """Yield each event log with the complete lines that were written to it since the last call."""
        for path in logs(self._folder):
            data = b""
            with contextlib.suppress(OSError), path.open("rb") as file:
                file.seek(self._offsets.get(path, 0))
                data = file.read()
            complete_lines = data[: data.rfind(b"\n") + 1]
            self._offsets[path] = self._offsets.get(path, 0) + len(complete_lines)
            yield path, complete_lines.splitlines()


_LAST = 8
"""Lines of a look at a growing event log that are decoded to learn how far it got."""

_OTHER_LINES = (b'{"k":"hello"', b'{"k":"framework"', b'{"k":"bye"')


def events(raw: Iterable[bytes]) -> Iterator[Event]:
    """Yield the events among these lines; lines that cannot be decoded are skipped."""
    for one in raw:
        try:
            line = DECODER.decode(one)
        except UNREADABLE:
            continue
        if isinstance(line, Event):
            yield line


def rank(first: bytes, world: int) -> int | None:
    """Return the rank of a process by the first line of its event log, None if it is not one of ``world``."""
    try:
        line = DECODER.decode(first)
    except UNREADABLE:
        return None
    return line.rank if isinstance(line, Hello) and line.world == world else None


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

    def take(self, raw: Sequence[bytes]) -> None:
        """Add new lines of an event log."""
        self._take_start(raw)
        for event in events(raw[-_LAST:]):
            if not is_inference(event.fw) and event.fw not in FITTED:
                self.trained = max(self.trained, event.step)
            if is_inference(event.fw):  # a training may follow, whose steps count from 1
                self.calls = max(self.calls, event.step)
            else:
                self.step = max(self.step, event.step)
            self.loss = self.loss if event.value is None else float.fromhex(event.value)

    def _take_start(self, raw: Sequence[bytes]) -> None:
        """Look for what is not an event: who this is, what it imported, whether it ended."""
        for one in raw if not self.trained else raw[-_LAST:]:
            if one.startswith(_OTHER_LINES):
                with contextlib.suppress(*UNREADABLE):
                    line = DECODER.decode(one)
                    if isinstance(line, Hello):
                        self.world = line.world or 1
                        self.attempt = line.attempt if line.rank is not None else None
                    self.may_train = isinstance(line, Framework) or (self.may_train and not isinstance(line, Bye))
