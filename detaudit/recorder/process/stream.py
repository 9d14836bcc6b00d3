"""Write the instrumentation log of one process, in blocks, for a window of steps."""

from __future__ import annotations

import os
import threading

from ... import private, wire
from . import guard
from .log import LogFile, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .recorder import Recorder


_BLOCK = 2**16
_MOST_TROUBLES = 20


class OpStream:
    """The instrumentation log of a process. ``open`` is true while the training is inside the window of steps."""

    def __init__(self, recorder: Recorder, watch: dict[str, Any]) -> None:
        self.level: str = watch["level"]
        self.request = watch
        self.racing = frozenset(watch.get("racing", ()))
        self.open = False
        self._recorder = recorder
        self._first, self._last = int(watch["first"]), int(watch["last"])
        self._opened: list[Callable[[bool], None]] = []
        self._forked: list[Callable[[], None]] = []
        self.lock = threading.RLock()
        self.forget()
        (recorder.at_call if watch.get("calls") else recorder.at_step)(self.stepped)
        recorder.at_end(self.flush, self.forget, tasks=False)
        self.stepped(0)

    def forget(self) -> None:
        """Start over, as in a forked child, which has its own log."""
        self.lock = threading.RLock()
        self.number = 0
        self._lines: list[str] = []
        self._size = 0
        self._file: LogFile | None = None
        self._pid = os.getpid()
        self._troubles = 0
        for observe in self._forked:
            observe()

    def when_forked(self, observe: Callable[[], None]) -> None:
        """Call ``observe()`` in a forked child."""
        self._forked.append(observe)

    def when_open(self, observe: Callable[[bool], None]) -> None:
        """Call ``observe(open)`` now, and in the training thread whenever the window opens or closes."""
        self._opened.append(observe)
        observe(self.open)

    def when_over(self, finish: Callable[[], None], forget: Callable[[], None]) -> None:
        """Call ``finish`` before the process ends, ``forget`` in a forked child; see Recorder.at_end."""
        self._recorder.at_end(finish, forget, tasks=False)

    def stepped(self, steps: int) -> None:
        """Open or close the window after this number of steps, and write the collected lines.

        If the end of a step is detected only at the next loss, a forward pass begins one step earlier by this count.
        """
        now = self._first - 2 <= steps < self._last
        if now != self.open:
            self.open = now
            for observe in self._opened:
                observe(now)
        self.flush()

    def step(self, after_loss: bool) -> int:
        """Return the number of the current step, see Training.current_step; 0 if nothing trains yet.

        Of an inference it is the number of the current call.
        """
        if self.request.get("calls"):
            return self._recorder.calls + 1
        return self._recorder.current_step(after_loss) or 0

    def write(self, kind: str, **fields: Any) -> None:
        """Add a line. It is on disk after the next step at the latest."""
        text = encode({"k": kind, **fields}) + "\n"
        with self.lock:
            self._lines.append(text)
            self._size += len(text)
            if self._size > _BLOCK:
                self.flush()

    def next_number(self) -> int:
        """Return the number of the next operation of this process."""
        with self.lock:
            self.number += 1
            return self.number - 1

    def flush(self) -> None:
        """Write the lines that were added. If that fails, the log is incomplete."""
        with self.lock:
            if not self._lines or self._pid != os.getpid():
                return
            text, self._lines, self._size = "".join(self._lines), [], 0
            try:
                if self._file is None:
                    self._file = LogFile(self.path(wire.OPS_SUFFIX))
                self._file.append(text.encode("ascii"))
            except OSError as error:
                guard.pass_on(error)
                self._file = None

    def keep(self, role: str, digest: str, dtype: str, shape: list[int], data: bytes) -> None:
        """Write a requested tensor to its own file, unless that exists."""
        with self.lock:
            if os.path.exists(self.path(f".{role}.bin")):
                return
            name = self.save(role, data)
        self.write("tensor", role=role, digest=digest, dtype=dtype, shape=shape, file=name)

    def save(self, name: str, data: bytes) -> str:
        """Write bytes to a file of this process, and return its name."""
        path = self.path(f".{name}.bin")
        with open(path, "wb", opener=private.opener) as file:
            file.write(data)
        return os.path.basename(path)

    def path(self, suffix: str) -> str:
        """Return the path of a file next to the event log of this process, which is created if necessary."""
        return self._recorder.sink.path[: -len(wire.LOG_SUFFIX)] + suffix

    def trouble(self, where: str, error: BaseException) -> None:
        """Record that the instrumentation failed, up to a maximum number of times."""
        self._troubles += 1
        if self._troubles <= _MOST_TROUBLES or guard.raised(error):
            self._recorder.sink.trouble(where, error)
