"""Write the values that the probes of one process record, each with its name and number."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.recorder import Recorder

MOST = 250_000
"""Lines that one process writes at most, about 30 MB. After that, probes only return their argument."""

_LONGEST_NAME = 200
_LONGEST_VALUE = 80


class ProbeLog:
    """Numbers the values and the gradients of each name, from 1. Any thread may write."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        recorder.at_end(lambda: None, self.forget)
        self.forget()

    def forget(self) -> None:
        """Start over, as in a forked child."""
        self.lock = threading.RLock()
        self._counts: dict[tuple[str, bool], int] = {}
        self._reported: set[str] = set()
        self._written = 0

    @property
    def full(self) -> bool:
        """Whether the maximum number of lines was written."""
        return self._written >= MOST

    def note(self, name: str, digest: str, value: str | None, *, gradient: bool, after_loss: bool = False) -> None:
        """Write a value or a gradient with the current step; for ``after_loss``, see Training.current_step."""
        name = name[:_LONGEST_NAME]
        with self.lock:
            self._written += 1
            if self._written > MOST:
                return
            number = self._counts[name, gradient] = self._counts.get((name, gradient), 0) + 1
            self._recorder.sink.write(
                {
                    "k": "probe",
                    "name": name,
                    "n": number,
                    "step": self._recorder.current_step(after_loss),
                    "kind": "gradient" if gradient else "value",
                    "digest": digest,
                    "value": None if value is None else value[:_LONGEST_VALUE],
                }
            )
            if self.full:
                self.trouble("detaudit.monitor", RuntimeError(f"only the first {MOST} values were recorded"))

    def trouble(self, where: str, error: Exception) -> None:
        """Record a failure. For each error, only the first place is written, since there may be hundreds."""
        with self.lock:
            if str(error) not in self._reported:
                self._reported.add(str(error))
                self._recorder.sink.trouble(where, error)
