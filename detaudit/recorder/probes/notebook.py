"""Writes down what the probes of one process see, each under its name and its number."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.recorder import Recorder

MOST = 250_000
"""Lines that one process writes at most, some 30 MB; after that probes only pass their argument through."""

_LONGEST_NAME = 200
_LONGEST_VALUE = 80


class Notebook:
    """Numbers the values and the gradients of each name, from 1; any thread may write."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        recorder.at_end(lambda: None, self.forget)
        self.forget()

    def forget(self) -> None:
        """Start anew, as in a forked child."""
        self.lock = threading.RLock()
        self._counts: dict[tuple[str, bool], int] = {}
        self._complaints: set[str] = set()
        self._written = 0

    @property
    def full(self) -> bool:
        """Whether no more is written."""
        return self._written >= MOST

    def note(self, name: str, digest: str, value: str | None, *, gradient: bool, after_loss: bool = False) -> None:
        """Write one value, or one gradient, with the step under way; ``after_loss`` as for Training.under_way."""
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
                    "step": self._recorder.step_under_way(after_loss),
                    "kind": "gradient" if gradient else "value",
                    "digest": digest,
                    "value": None if value is None else value[:_LONGEST_VALUE],
                }
            )
            if self.full:
                self.complain("detaudit.monitor", RuntimeError(f"only the first {MOST} values were recorded"))

    def complain(self, where: str, error: Exception) -> None:
        """Write where something could not be recorded: the first place for each reason, for there may be hundreds."""
        with self.lock:
            if str(error) not in self._complaints:
                self._complaints.add(str(error))
                self._recorder.sink.trouble(where, error)
