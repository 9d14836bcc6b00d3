"""Follows a run while it goes on, to notice the moment in which it differs from another."""

from collections.abc import Sequence
from pathlib import Path

from detaudit.auditor.evidence import growing_logs
from detaudit.auditor.judge import pairing
from detaudit.model import RunRecord, Stage, Training, is_inference


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
        if stage not in pairing.results(self._reference) or (self._reference.cut and step > self._reference.steps):
            return False
        last, count = self._seen.get(stage, (step, 0))
        self._ascends = self._ascends and last <= step
        if not self._ascends:
            return False
        place = count if last == step else 0
        self._seen[stage] = step, place + 1
        expected = self._reference.digests.get(stage, {}).get(step, ())
        return len(expected) <= place or expected[place] != digest


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

    def differs(self, log: Path, raw: Sequence[bytes]) -> bool:
        """Whether new lines of an event log differ from what the reference recorded there."""
        if raw and log not in self._ranks:
            self._ranks[log] = growing_logs.rank(raw[0], len(self._comparers))
        for event in growing_logs.events(raw):
            if not self._comparers or event.stage not in pairing.RESULTS:
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
