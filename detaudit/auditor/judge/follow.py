"""Follows a run while it goes on, to see the moment in which it differs from another."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from detaudit.auditor.evidence.event_logs import Stream, events
from detaudit.auditor.evidence.event_records import Event
from detaudit.auditor.judge.streams import RESULT


class Follower:
    """Compares the trace of a run with ``reference`` as it grows.

    Only one training process of one framework can be followed: several are numbered when they have ended.
    """

    def __init__(self, reference: Sequence[Stream]) -> None:
        self._reference = reference[0] if len(reference) == 1 and reference[0].final is not None else None
        self._seen: dict[tuple[int, str], int] = {}
        self._trains: Path | None = None

    def differs(self, path: Path, raw: Iterable[bytes]) -> bool:
        """Whether new lines of a trace differ from what the reference wrote there."""
        if self._reference is None:
            return False
        return any(self._unlike(path, event) for event in events(raw) if event.stage in RESULT)

    def _unlike(self, path: Path, event: Event) -> bool:
        reference = self._reference
        self._trains = self._trains or path
        if reference is None or path != self._trains or event.fw != reference.framework:
            self._reference = None
            return False
        place = (event.step, event.stage)
        number = self._seen[place] = self._seen.get(place, 0) + 1
        digests = reference.stages.get(event.step, {}).get(event.stage, ())
        return len(digests) < number or digests[number - 1] != event.digest
