"""Compare the rows of a run so far, with a reference or with runs that go on beside it."""

import threading
from pathlib import Path

from detaudit.judge import comparer
from detaudit.model import FITTED, RunRecord, Stage, Training, is_inference
from detaudit.runs import live_log
from detaudit.runs.live_log import News

# Compare runs with each other while they go on, to notice that two differ before any has ended.


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

    def take(self, run: int, log: Path, news: News) -> None:
        """Take in what is new in an event log of a run."""
        for event in news.events():
            if event.stage in comparer.RESULTS and event.fw not in FITTED and not is_inference(event.fw):
                with self._lock:
                    origin = (log, event.fw, event.lane)
                    last, count = self._last.get((run, event.stage), (event.step, -1))
                    ascends = self._logs.setdefault(run, origin) == origin and last <= event.step
                    self._followed = self._followed and ascends
                    count = count + 1 if last == event.step else 0
                    self._last[run, event.stage] = event.step, count
                    self._compare((event.fw, event.step, event.stage, count), event.digest)

    def _compare(self, key: _Key, digest: str) -> None:
        if self._seen.setdefault(key, digest) != digest and self.step is None and self._followed:
            self.step = max(1, key[1])
        if len(self._seen) > MOST:
            del self._seen[next(iter(self._seen))]


# Follows a run while it goes on, to notice the moment in which it differs from another.


class DigestFollower:
    """Compares the results of one training with a reference as they arrive, one digest after another.

    The steps of a stage ascend. From a step on that does not, the training is not compared before its end.
    """

    def __init__(self, reference: Training) -> None:
        self._reference = reference
        self._seen: dict[Stage, tuple[int, int]] = {}
        self._ascends = True

    def differs(self, step: int, stage: Stage, digest: str) -> bool:
        """Take in the next digest, and return whether the training can no longer end with the same results."""
        if stage not in comparer.results(self._reference) or (self._reference.cut and step > self._reference.steps):
            return False
        last, count = self._seen.get(stage, (step, 0))
        self._ascends = self._ascends and last <= step
        if not self._ascends:
            return False
        index = count if last == step else 0
        self._seen[stage] = step, index + 1
        expected = self._reference.digests.get(stage, {}).get(step, ())
        return len(expected) <= index or expected[index] != digest


class Follower:
    """Compares the event logs of a run with ``reference`` as they grow.

    It follows one training process of one framework, or the ranks that a launcher started, one training each. What
    else trains is matched at the end.
    """

    def __init__(self, reference: RunRecord | None) -> None:
        parts = reference.trainings if reference is not None else ()
        known = all((part.final is not None or part.cut) and not part.attempt for part in parts)
        ranks = len(parts) == 1 or not any(part.unplaced for part in parts)
        self._framework = parts[0].framework if parts else ""
        same = {part.framework for part in parts} == {self._framework}
        self._comparers = [DigestFollower(part) for part in parts] if known and ranks and same else []
        self._ranks: dict[Path, int | None] = {}
        self._lanes: dict[int | None, tuple[Path, int]] = {}

    def differs(self, log: Path, news: News) -> bool:
        """Whether what is new in an event log differs from what the reference recorded there."""
        if news.lines and log not in self._ranks:
            self._ranks[log] = live_log.rank(news, len(self._comparers))
        for event in news.events():
            if not self._comparers or event.stage not in comparer.RESULTS:
                continue
            if is_inference(event.fw) and not is_inference(self._framework):
                continue  # before the training
            rank = self._ranks[log] if len(self._comparers) > 1 else 0
            lane = self._lanes.setdefault(rank, (log, event.lane))
            if rank is None or lane != (log, event.lane) or event.fw != self._framework:
                self._comparers = []
            elif self._comparers[rank].differs(event.step, event.stage, event.digest):
                return True
        return False
