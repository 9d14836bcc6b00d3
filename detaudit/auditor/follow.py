"""Follows a run while it goes on, to see the moment in which it differs from another."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from detaudit import wire
from detaudit.auditor.compare import RESULT
from detaudit.auditor.lines import DECODER, Event
from detaudit.auditor.traces import Stream


class Follower:
    """Compares the trace of a run with ``reference`` as it grows.

    Only one training process of one framework can be followed: several are numbered when they have ended.
    """

    def __init__(self, folder: Path, reference: Sequence[Stream]) -> None:
        self._folder = folder / "trace"
        self._reference = reference[0] if len(reference) == 1 and reference[0].final is not None else None
        self._offsets: dict[Path, int] = {}
        self._seen: dict[tuple[int, str], int] = {}
        self._trains: Path | None = None

    def differs(self) -> bool:
        """Whether what has been written since the last call differs from what the reference wrote there."""
        if self._reference is None:
            return False
        return any(self._unlike(path, line) for path in self._paths() for line in self._new(path))

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("*" + wire.TRACE_SUFFIX))

    def _new(self, path: Path) -> list[Event]:
        with path.open("rb") as file:
            file.seek(self._offsets.get(path, 0))
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offsets[path] = self._offsets.get(path, 0) + len(whole)
        events = []
        for raw in whole.splitlines():
            try:
                line = DECODER.decode(raw)
            except msgspec.DecodeError:
                continue
            if isinstance(line, Event) and line.stage in RESULT:
                events.append(line)
        return events

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
