"""Compare runs with each other while they go on, to notice that two differ before any has ended."""

import threading
from collections.abc import Iterable
from pathlib import Path

from detaudit.auditor.evidence.growing_logs import events
from detaudit.auditor.judge import pairing
from detaudit.model import FITTED, Stage, is_inference

MOST = 100_000
"""Digests that are kept: enough for runs that are about as far as each other."""

_Key = tuple[str, int, Stage, int]


class Abreast:
    """What the runs of a group recorded so far, and the ``step`` at which two differ, None as long as none do.

    This decides nothing: all runs are ended after that step, and compared through it like others. Only runs in which
    one process trains once can be followed, in which the steps of each stage ascend. No run is ended in its first
    ``after_s`` seconds of training.
    """

    def __init__(self, after_s: float = 0.0) -> None:
        self.step: int | None = None
        self.after_s = after_s
        self._lock = threading.Lock()
        self._seen: dict[_Key, str] = {}
        self._logs: dict[int, tuple[Path, str, int]] = {}
        self._last: dict[tuple[int, Stage], tuple[int, int]] = {}
        self._followed = True

    def take(self, run: int, log: Path, raw: Iterable[bytes]) -> None:
        """Take in new lines of an event log of a run."""
        for event in events(raw):
            if event.stage in pairing.RESULTS and event.fw not in FITTED and not is_inference(event.fw):
                with self._lock:
                    place = (log, event.fw, event.lane)
                    last, count = self._last.get((run, event.stage), (event.step, -1))
                    ascends = self._logs.setdefault(run, place) == place and last <= event.step
                    self._followed = self._followed and ascends
                    count = count + 1 if last == event.step else 0
                    self._last[run, event.stage] = event.step, count
                    self._compare((event.fw, event.step, event.stage, count), event.digest)

    def _compare(self, key: _Key, digest: str) -> None:
        if self._seen.setdefault(key, digest) != digest and self.step is None and self._followed:
            self.step = max(1, key[1])
        if len(self._seen) > MOST:
            del self._seen[next(iter(self._seen))]
