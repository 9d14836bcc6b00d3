"""Read TensorBoard's event files, and other files of TensorFlow's records.

Of an event file, each value that was logged is a part, named by its tag and step. Times are left out, and what says
when, by whom and with what it was written; so is the metadata of profiled runs, which is nothing but times. A record
that was cut off is the end. The messages are at
https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/util/event.proto and
https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/framework/summary.proto.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from detaudit.runs.formats import Part, protobuf
from detaudit.runs.formats import values as single
from detaudit.runs.formats.values import folded

MOST_RECORD = 256 * 2**20
"""Bytes of a record that is read."""

MOST_TEXTS = 1000
"""Texts of a tensor that are parts of their own."""

_HEADER = 12  # the length, and its checksum
_FOOTER = 4
_VERSION = b"brain.Event:"
_WALL_TIME = 0x09  # key of the first field, a double, in seconds since 1970
_FROM, _TO = 1e9, 1e10

_STEP, _GRAPH, _SUMMARY, _LOG, _META_GRAPH = 2, 4, 5, 6, 9
_TAG, _SIMPLE, _OLD_HISTOGRAM, _IMAGE, _HISTOGRAM, _AUDIO, _TENSOR, _METADATA = 1, 2, 3, 4, 5, 6, 8, 9
_HPARAMS = "hparams"
_FIELDS = frozenset(range(1, 11))
_LEAST_EVENT = 10

Found = Iterator[tuple[str, Part]]


# ----------------------------------------------------------------------------------------------------------- records


def is_records(head: bytes, path: Path) -> bool:
    """Return whether this begins with a record of TensorFlow, whose length has a checksum.

    https://www.tensorflow.org/tutorials/load_data/tfrecord
    """
    return len(head) >= _HEADER and _checksum(head[:8]) == int.from_bytes(head[8:_HEADER], "little")


def is_events(head: bytes, path: Path) -> bool:
    """Return whether these are records of events: the first says so, or begins with a time and all of it is read."""
    if not is_records(head, path):
        return False
    size = int.from_bytes(head[:8], "little")
    first = head[_HEADER : _HEADER + size]
    if _VERSION in first[:64]:
        return True
    if first[:1] != bytes([_WALL_TIME]) or len(first) < size or size < _LEAST_EVENT:
        return False
    if not _FROM < struct.unpack("<d", first[1:9])[0] < _TO:
        return False
    try:
        return {field.number for field in protobuf.fields(first)} <= _FIELDS
    except ValueError:
        return False


def records_parts(path: Path) -> Iterator[Part]:
    """See Format.parts. Each record is one; the features of an example are in their order, since a map has none."""

    def named_parts() -> Found:
        with path.open("rb") as file:
            for count, record in enumerate(_records(file), 1):
                yield "record *", single.opaque(f"record {count}", _in_order(record))

    return folded(named_parts())


def _in_order(record: bytes) -> bytes:
    """Return a ``tf.train.Example`` with its features by their names, anything else as it is.

    https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/example/example.proto
    """
    try:
        (features,) = protobuf.fields(record)
        entries = [
            (key.data, feature.data)
            for entry in protobuf.fields(features.data)
            for key, feature in [protobuf.fields(entry.data)]
            if (features.number, entry.number, key.number, feature.number) == (1, 1, 1, 2)
        ]
        named = {bytes(key).decode(): bytes(feature) for key, feature in entries}
        lists = [one.number for feature in named.values() for one in protobuf.fields(feature)]
    except ValueError:
        return record
    size = sum(1 for _ in protobuf.fields(features.data))
    is_example = len(named) == size and len(lists) <= size and {*lists} <= {1, 2, 3}
    return repr(sorted(named.items())).encode() if is_example and named else record


def _records(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the records up to one that was cut off. Raises ValueError if a length is none."""
    while len(head := file.read(_HEADER)) == _HEADER:
        size = int.from_bytes(head[:8], "little")
        if _checksum(head[:8]) != int.from_bytes(head[8:], "little"):
            raise ValueError("the length of a record in it is damaged")
        if size > MOST_RECORD:
            raise ValueError("a record in it is too large")
        record = file.read(size)
        if len(record) < size or len(file.read(_FOOTER)) < _FOOTER:
            return
        yield record


def _table() -> tuple[int, ...]:
    """Return the table of CRC-32C: https://www.rfc-editor.org/rfc/rfc3720#appendix-B.4."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


_CRC = _table()


def _checksum(data: bytes) -> int:
    """Return what TensorFlow writes as the checksum of these bytes.

    https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/lib/hash/crc32c.h
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


# ------------------------------------------------------------------------------------------------------------ events


def events_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""

    def named_parts() -> Found:
        with path.open("rb") as file:
            described: set[str] = set()
            found = None
            for record in _records(file):
                for found in _event(record, described):
                    yield found
            if found is None:
                yield "events", single.text("events", "none")

    return folded(named_parts())


def _event(record: bytes, described: set[str]) -> Found:
    fields = list(protobuf.fields(record))
    step = next((protobuf.signed(field.value) for field in fields if field.number == _STEP), 0)
    for field in fields:
        if field.number == _SUMMARY:
            for value in protobuf.fields(field.data):
                yield from _value(value.data, step, described)
        elif field.number == _GRAPH:
            yield "graph at step *", single.opaque(f"graph at step {step}", _graph(field.data))
        elif field.number == _META_GRAPH:
            yield "meta graph at step *", single.opaque(f"meta graph at step {step}", bytes(field.data))
        elif field.number == _LOG:
            message = {one.number: one for one in protobuf.fields(field.data)}
            if 2 in message:
                yield "log message at step *", single.text(f"log message at step {step}", message[2].text)


def _graph(data: memoryview) -> bytes:
    """Return a graph with the attributes of its nodes in order, since maps have none."""
    encoded_fields = []
    for field in protobuf.fields(data):
        if field.number == 1:  # NodeDef, whose attributes are 5
            node = sorted(
                (one.number, bytes(one.data) if one.number == 5 else b"", at, bytes(one.data) or one.value)
                for at, one in enumerate(protobuf.fields(field.data))
            )
            encoded_fields.append(repr([(number, data) for number, _, _, data in node]).encode())
        else:
            encoded_fields.append(bytes(field.data))
    return b"\n".join(encoded_fields)


def _value(data: memoryview, step: int, described: set[str]) -> Found:
    """Yield one value of a summary, and the first time the metadata of its tag."""
    fields = {field.number: field for field in protobuf.fields(data)}
    tag = single.printable(fields[_TAG].text) if _TAG in fields else ""
    name, series = f"{tag} at step {step}", f"{tag} at step *"
    if _METADATA in fields and tag not in described:
        if len(described) < single.MOST_SERIES:
            described.add(tag)
        yield from _metadata(fields[_METADATA].data, tag)
    if _SIMPLE in fields:
        yield series, single.number(name, _digits(struct.unpack("<f", fields[_SIMPLE].data)[0]))
    if _HISTOGRAM in fields:
        yield series, single.opaque(name, bytes(fields[_HISTOGRAM].data))
    if _OLD_HISTOGRAM in fields:
        yield series, single.opaque(name, bytes(fields[_OLD_HISTOGRAM].data))
    for kind in (_IMAGE, _AUDIO):
        if kind in fields:
            yield series, single.opaque(name, b"".join(bytes(one.data) for one in protobuf.fields(fields[kind].data)))
    if _TENSOR in fields:
        yield from _tensor(fields[_TENSOR].data, series, name)


def _digits(value: float) -> str:
    """Return the fewest digits that are this float of 32 bits and no other."""
    for count in range(6, 9):
        digits = f"{value:.{count}g}"
        if struct.pack("<f", float(digits)) == struct.pack("<f", value):
            return digits
    return f"{value:.9g}"


_TYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "|u1", 5: "<i2", 6: "|i1", 9: "<i8", 10: "|b1", 14: "bfloat16", 19: "<f2"}
"""https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/framework/types.proto"""

_SINGLE = {"<f4": "<f", "<f8": "<d", "<i4": "<i", "<i8": "<q", "|u1": "<B", "<i2": "<h", "|i1": "<b"}
_FLOATS, _DOUBLES, _TEXTS = 5, 6, 8


def _tensor(data: memoryview, series: str, name: str) -> Found:
    """Yield a tensor: a scalar as a number, texts each for itself.

    https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/framework/tensor.proto
    """
    kind, content = 0, b""
    shape: tuple[int, ...] = ()
    texts: list[bytes] = []
    numbers: list[bytes] = []
    for field in protobuf.fields(data):
        if field.number == 1:
            kind = field.value
        elif field.number == 2:
            shape = _shape(field.data)
        elif field.number == 4:
            content = bytes(field.data)
        elif field.number == _TEXTS:
            texts.append(bytes(field.data))
        elif field.number > 4:
            numbers.append(bytes(field.data) or str(field.value).encode())
    if texts:
        yield from _texts(texts, series, name)
        return
    dtype = _TYPES.get(kind, "")
    if not shape and (digits := _scalar(dtype, content, numbers)):
        yield series, single.number(name, digits)
    else:
        yield series, Part(name, iter([content, *numbers]), dtype, shape)


def _shape(data: memoryview) -> tuple[int, ...]:
    shape = []
    for dimension in protobuf.fields(data):
        if dimension.number == 2:
            sizes = [field.value for field in protobuf.fields(dimension.data) if field.number == 1]
            shape.append(protobuf.signed(sizes[0]) if sizes else 0)
    return tuple(shape)


def _scalar(dtype: str, content: bytes, numbers: list[bytes]) -> str:
    """Return the digits of a number, ``""`` if it is none that is known."""
    code = _SINGLE.get(dtype)
    if code is None:
        return ""
    if not content and len(numbers) == 1:
        content = numbers[0]
        if code[1] not in "fd":  # varints, packed or not
            value = int(content) if content.isdigit() else protobuf.varint(content, 0)[0]
            return str(protobuf.signed(value))
    if len(content) != struct.calcsize(code):
        return ""
    value = struct.unpack(code, content)[0]
    return _digits(value) if dtype == "<f4" else repr(value)


def _texts(texts: list[bytes], series: str, name: str) -> Found:
    """Yield texts. An image is three: its width, its height, and its bytes, whose digest is shown alone."""
    for index, data in enumerate(texts[:MOST_TEXTS]):
        one = f"{name}[{index}]" if len(texts) > 1 else name
        try:
            yield series, single.number_or_text(one, data.decode())
        except UnicodeDecodeError:
            yield series, single.opaque(one, data)
    if len(texts) > MOST_TEXTS:
        rest = b"".join(len(data).to_bytes(8, "little") + data for data in texts[MOST_TEXTS:])
        yield series, single.opaque(f"{name}, further texts", rest)


def _metadata(data: memoryview, tag: str) -> Found:
    """Yield what is said of a tag: hyperparameters one by one, of all else its bytes."""
    for field in protobuf.fields(data):
        plugin = {one.number: one for one in protobuf.fields(field.data)} if field.number == 1 else {}
        if 1 in plugin and plugin[1].text == _HPARAMS:
            if 2 in plugin:
                yield from _hparams(plugin[2].data, tag)
            return
    yield "metadata", single.opaque(f"{tag}: metadata", bytes(data))


def _hparams(data: memoryview, tag: str) -> Found:
    """Yield the hyperparameters of a session, whose map has no order; its name and times are left out.

    https://github.com/tensorflow/tensorboard/blob/master/tensorboard/plugins/hparams/plugin_data.proto
    """
    experiment, started = 2, 3
    for field in protobuf.fields(data):
        if field.number == started:
            for entry in protobuf.fields(field.data):
                if entry.number == 1:
                    pair = {one.number: one for one in protobuf.fields(entry.data)}
                    if 1 in pair and 2 in pair:
                        yield "hparams", _hparam(f"{_HPARAMS}: {single.printable(pair[1].text)}", pair[2].data)
        elif field.number == experiment:
            described = [bytes(one.data) for one in protobuf.fields(field.data) if one.number in (4, 5)]
            yield "hparams", single.opaque(f"{tag}: metadata", b"".join(described))


def _hparam(name: str, data: memoryview) -> Part:
    """Return a value: https://protobuf.dev/reference/protobuf/google.protobuf/#value."""
    for field in protobuf.fields(data):
        if field.number == 2:
            return single.number(name, repr(struct.unpack("<d", field.data)[0]))
        if field.number == 3:
            return single.text(name, field.text)
        if field.number == 4:
            return single.literal(name, "true" if field.value else "false")
    return single.opaque(name, bytes(data))
