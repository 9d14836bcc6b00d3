"""Encodes curves and texts as event files of TensorBoard, by its own package alone, without TensorFlow or torch."""

import io
from collections.abc import Iterable, Iterator, Mapping

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.summary.writer.record_writer import RecordWriter

from detaudit.report.tracked_runs import Points

_VERSION = "brain.Event:2"


def curves(found: Mapping[str, Points], at: float) -> bytes:
    """Return a file with curves by name. ``at`` is the time of all its events, in seconds since 1970."""
    return _file(_scalars(found, at), at)


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


def _scalars(found: Mapping[str, Points], at: float) -> Iterator[Event]:
    for name, points in found.items():
        for step, value in points:
            summary = Summary(value=[Summary.Value(tag=name, simple_value=value)])
            yield Event(wall_time=at, step=step, summary=summary)


def _file(events: Iterable[Event], at: float) -> bytes:
    found = io.BytesIO()
    writer = RecordWriter(found)
    for event in (Event(wall_time=at, file_version=_VERSION), *events):
        writer.write(event.SerializeToString())
    return found.getvalue()
