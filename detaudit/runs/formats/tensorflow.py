"""Read checkpoints of TensorFlow: an index, which is a sorted table of names, and shards with the bytes of tensors.

The table is LevelDB's (https://github.com/google/leveldb/blob/main/doc/table_format.md), its values are the messages
``BundleHeaderProto`` and ``BundleEntryProto`` of tensorflow/core/protobuf/tensor_bundle.proto. A shard has no
mark: it is one if the index beside it says so. The index has types and shapes, and the shard the bytes.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from detaudit.runs.formats import Part, Start, opaque, pieces, text, unique
from detaudit.runs.formats.protobuf import BYTES, fields, signed, varint

MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
"""How a table ends."""

MOST_INDEX = 256 * 2**20
MOST_BLOCKS = 1_000_000
MOST_TEXTS = 64 * 2**20
"""Bytes of a tensor of texts, which is read at once."""

_FOOTER = 48
_SHARD = re.compile(r"(.+)\.data-(\d{5})-of-(\d{5})")

_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_OF_KERAS = re.compile(r"_all_variables/\d+/")
"""Copies of a model's variables in the order of their addresses (keras/src/export/saved_model_export_archive.py)."""

_TEXTS = "texts"
_DTYPES = {1: "f4", 2: "f8", 3: "i4", 4: "u1", 5: "i2", 6: "i1", 7: _TEXTS, 8: "c8", 9: "i8", 10: "b1", 14: "bf16"}
_DTYPES |= {17: "u2", 18: "c16", 19: "f2", 22: "u4", 23: "u8"}
"""DataType of tensorflow/core/framework/types.proto."""


def is_checkpoint(start: Start) -> bool:
    """Return whether a file is an index, or a shard of one beside it."""
    if start.tail.endswith(MAGIC) and start.size >= _FOOTER:
        return True
    index = _index_of(start.path)
    return index is not None and index.is_file() and Start(index).tail.endswith(MAGIC)


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return unique(_of_index(path) if Start(path).tail.endswith(MAGIC) else _of_shard(path))


def _index_of(path: Path) -> Path | None:
    match = _SHARD.fullmatch(path.name)
    return path.with_name(f"{match[1]}.index") if match else None


@dataclass(frozen=True)
class _Entry:
    name: str
    dtype: str
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int


def _of_index(path: Path) -> Iterator[Part]:
    for entry in _entries(path):
        if not _OF_KERAS.match(entry.name):  # the shard says whether those are copies
            yield text(entry.name, f"{entry.dtype} {entry.shape}")


def _of_shard(path: Path) -> Iterator[Part]:
    match, index = _SHARD.fullmatch(path.name), _index_of(path)
    if match is None or index is None:
        raise ValueError("it is no shard of a checkpoint")
    with path.open("rb") as file:
        entries = [entry for entry in _entries(index) if entry.shard == int(match[2])]
        copied = (
            {_sha256(file, entry) for entry in entries if not _OF_KERAS.match(entry.name)}
            if any(_OF_KERAS.match(entry.name) for entry in entries)
            else set()
        )
        for entry in entries:
            if _OF_KERAS.match(entry.name) and _sha256(file, entry) in copied:
                continue
            file.seek(entry.offset)
            if entry.dtype == _TEXTS:
                if entry.size > MOST_TEXTS:
                    raise ValueError("a tensor of texts is too large")
                texts = b"".join(pieces(file, entry.size))
                if entry.name == _OBJECT_GRAPH and entry.shape == ():
                    length, at = varint(texts, 0)
                    yield opaque(entry.name, object_graph(texts[at + 4 :][:length]))
                else:
                    yield opaque(entry.name, _texts(texts, entry.shape))
            else:
                yield Part(entry.name, pieces(file, entry.size), f"<{entry.dtype}", entry.shape)


def _sha256(file: IO[bytes], entry: _Entry) -> bytes:
    digest = hashlib.sha256(f"{entry.dtype} {entry.shape} ".encode())
    file.seek(entry.offset)
    for piece in pieces(file, entry.size):
        digest.update(piece)
    return digest.digest()


def _texts(data: bytes, shape: tuple[int, ...]) -> bytes:
    """Return texts with their lengths: there are varints with the lengths, a checksum of these, and the texts."""
    count, at = 1, 0
    for extent in shape:
        count *= extent
    lengths = bytearray()
    for _ in range(min(count, len(data))):
        length, at = varint(data, at)
        lengths += length.to_bytes(8, "little")
    return bytes(lengths) + data[at + 4 :]


def object_graph(data: bytes | memoryview) -> bytes:
    """Return the objects of a message TrackableObjectGraph in an order of their own: theirs depends on hashes.

    See tensorflow/core/protobuf/trackable_object_graph.proto. Raises ValueError if it is none.
    """
    objects = []
    for one in fields(data):
        if one.number != 1 or one.kind != BYTES:
            raise ValueError("it is no graph of objects")
        names = []
        for field in fields(one.data):
            if field.kind == BYTES:  # children, attributes and slots of an optimizer, whose other fields number objects
                texts = [inner.text for inner in fields(field.data) if inner.kind == BYTES]
                if any(_OF_KERAS.match(one) for one in texts):
                    texts = [_OF_KERAS.pattern]
                names.append(f"{field.number} {texts}".encode())
        objects.append(b"\1".join(sorted(names)))
    return b"\2".join(sorted(objects))


def _entries(index: Path) -> Iterator[_Entry]:
    """Yield the tensors that an index names; they are sorted by their names."""
    with index.open("rb") as file:
        size = file.seek(0, 2)
        if size > MOST_INDEX:
            raise ValueError("its index is too large")
        file.seek(size - _FOOTER)
        footer = file.read(_FOOTER)
        if footer[-len(MAGIC) :] != MAGIC:
            raise ValueError("it does not end as a table does")
        _, at = varint(footer, 0)
        _, at = varint(footer, at)
        start, at = varint(footer, at)
        length, _ = varint(footer, at)
        blocks = _block(file, start, length, size)
        for count, (_, handle) in enumerate(blocks):
            if count > MOST_BLOCKS:
                raise ValueError("its index has too many blocks")
            start, at = varint(handle, 0)
            length, _ = varint(handle, at)
            for key, value in _block(file, start, length, size):
                if key:
                    yield _entry(key.decode("utf-8", "backslashreplace"), value)


def _entry(name: str, value: bytes) -> _Entry:
    numbers, shape = dict.fromkeys((1, 3, 4, 5), 0), list[int]()
    for field in fields(value):
        if field.number == 2:
            for dim in fields(field.data):
                if dim.number == 2:
                    shape.append(next((signed(one.value) for one in fields(dim.data) if one.number == 1), 0))
        elif field.number == 7:
            name = f"{name} (in slices)"
        elif field.number in numbers:
            numbers[field.number] = field.value
    dtype = _DTYPES.get(numbers[1], f"type {numbers[1]}")
    if len(shape) > 64 or any(not 0 <= extent < 2**63 for extent in shape):
        raise ValueError("a shape in it is none")
    return _Entry(name, dtype, tuple(shape), numbers[3], numbers[4], numbers[5])


def _block(file: IO[bytes], start: int, length: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a block: each key is what differs from the one before."""
    if start + length + 5 > size:
        raise ValueError("a block of it ends after the file")
    file.seek(start)
    data = file.read(length + 1)
    if data[-1]:
        raise ValueError("its index is compressed")
    if length < 4:
        raise ValueError("a block of it is too short")
    restarts = int.from_bytes(data[length - 4 : length], "little")
    end = length - 4 - 4 * restarts
    at, key = 0, b""
    while at < end:
        shared, at = varint(data, at)
        rest, at = varint(data, at)
        count, at = varint(data, at)
        if shared > len(key) or at + rest + count > end:
            raise ValueError("a block of it makes no sense")
        key = key[:shared] + data[at : at + rest]
        yield key, data[at + rest : at + rest + count]
        at += rest + count
