"""Writes the losses of runs, and the report on them, to event files that TensorBoard reads."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from detaudit.auditor import store
from detaudit.errors import StorageError, UsageError
from detaudit.exports import event_files
from detaudit.launch.plan import folder_name
from detaudit.report.headlines import seconds
from detaudit.report.tracked import TrackedAudit

FILE = "events.out.tfevents.detaudit"
"""The name of each file: no other program writes one with it."""

_INSTEAD = "another folder"


def destination(place: str) -> "TensorBoard":
    """See exports.destination; ``place`` is a folder."""
    if not place or "://" in place:
        raise UsageError("--to tensorboard does not name a folder", "Name one, as in --to tensorboard:logs.")
    return TensorBoard(Path(place).expanduser())


class TensorBoard:
    """A folder of logs. Each audit has a folder in it, and each of its runs one in that, so that curves overlay."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def send(self, audits: Sequence[TrackedAudit], documents: Mapping[str, str]) -> list[str]:
        """See Destination.send. TensorBoard has no place for ``documents``."""
        return [self._write(audit) for audit in audits]

    def _write(self, audit: TrackedAudit) -> str:
        name = folder_name(f"{audit.started[:10]}-{audit.id[:8]}".strip("-"))
        folder = self._folder / folder_name(Path(audit.script).name) / name
        at = seconds(audit.started) or 0.0
        _save(folder, event_files.text("report", audit.note, at))
        for run in audit.runs:
            if run.curves:
                _save(folder / folder_name(run.recipe) / f"run-{run.number}", event_files.curves(run.curves, at))
        return str(folder)


def _save(folder: Path, data: bytes) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError.of(f"make {folder}", error, _INSTEAD) from error
    store.write(folder / FILE, data, shared=True, instead=_INSTEAD)
