"""Follows a run while it goes on, to notice the moment in which it differs from another."""

from collections.abc import Iterable
from pathlib import Path

from detaudit.auditor.evidence.growing_logs import events
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
    """Compares the event log of a run with ``reference`` as it grows.

    Only one training process of one framework can be followed: several are numbered when they have ended.
    """

    def __init__(self, reference: RunRecord | None) -> None:
        only = reference.parts[0] if reference is not None and len(reference.parts) == 1 else None
        self._framework = only.framework if only is not None else ""
        self._comparer = DigestFollower(only) if only is not None and (only.final is not None or only.cut) else None
        self._log: tuple[Path, int] | None = None

    def differs(self, log: Path, raw: Iterable[bytes]) -> bool:
        """Whether new lines of an event log differ from what the reference recorded there."""
        for event in events(raw):
            if self._comparer is None or event.stage not in pairing.RESULTS:
                continue
            if is_inference(event.fw) and not is_inference(self._framework):
                continue  # before the training
            self._log = self._log or (log, event.lane)
            if self._log != (log, event.lane) or event.fw != self._framework:
                self._comparer = None
            elif self._comparer.differs(event.step, event.stage, event.digest):
                return True
        return False
