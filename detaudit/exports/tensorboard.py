"""Event files for TensorBoard."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.summary.writer.record_writer import RecordWriter

from detaudit import store
from detaudit.errors import StorageError, UsageError
from detaudit.launch.plan import folder_name
from detaudit.report.groups import seconds
from detaudit.report.tracked import Points, TrackedAudit

# Encodes curves and texts as event files of TensorBoard, by its own package alone, without TensorFlow or torch.


_VERSION = "brain.Event:2"


def curves(series: Mapping[str, Points], at: float) -> bytes:
    """Return a file with curves by name. ``at`` is the time of all its events, in seconds since 1970."""
    return _file(_scalars(series, at), at)


def text(name: str, markdown: str, at: float) -> bytes:
    """Return a file with a text in Markdown."""
    shown = TensorProto(
        dtype=DT_STRING,
        string_val=[markdown.encode(errors="backslashreplace")],
        tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
    )
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    value = Summary.Value(tag=name, metadata=metadata, tensor=shown)
    return _file([Event(wall_time=at, summary=Summary(value=[value]))], at)


def _scalars(series: Mapping[str, Points], at: float) -> Iterator[Event]:
    for name, points in series.items():
        for step, value in points:
            summary = Summary(value=[Summary.Value(tag=name, simple_value=value)])
            yield Event(wall_time=at, step=step, summary=summary)


def _file(events: Iterable[Event], at: float) -> bytes:
    buffer = io.BytesIO()
    writer = RecordWriter(buffer)
    for event in (Event(wall_time=at, file_version=_VERSION), *events):
        writer.write(event.SerializeToString())
    return buffer.getvalue()


# Writes the losses of runs, and the report on them, to event files that TensorBoard reads.


FILE = "events.out.tfevents.detaudit"
"""The name of each file: no other program writes one with it."""

_INSTEAD = "another folder"


def destination(folder: str) -> "TensorBoard":
    """See cli/report.py."""
    if not folder or "://" in folder:
        raise UsageError("--to tensorboard does not name a folder", "Name one, as in --to tensorboard:logs.")
    return TensorBoard(Path(folder).expanduser())


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
        _save(folder, text("report", audit.note, at))
        for run in audit.runs:
            if run.curves:
                _save(folder / folder_name(run.recipe) / f"run-{run.number}", curves(run.curves, at))
        return str(folder)


def _save(folder: Path, data: bytes) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError.of(f"make {folder}", error, _INSTEAD) from error
    store.write(folder / FILE, data, shared=True, instead=_INSTEAD)
