"""Walk protocol buffers without their schema: https://protobuf.dev/programming-guides/encoding/.

What the numbers of fields mean is up to the caller.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Types of fields; groups, which proto3 has not, are refused."""

MOST_VARINT = 10


@dataclass(frozen=True)
class Field:
    """One field of a message: ``value`` is of a number, ``data`` of texts, bytes, packed numbers and messages."""

    number: int
    kind: int
    value: int = 0
    data: memoryview = field(default_factory=lambda: memoryview(b""))

    @property
    def text(self) -> str:
        """The data as text."""
        return bytes(self.data).decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class Span:
    """One field of a message in a file: its number, and its ``value``, or where its bytes are."""

    number: int
    kind: int
    value: int = 0
    start: int = 0
    size: int = 0


def varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return the number that begins here and where it ends. Raises ValueError if it does not end."""
    value = 0
    for count in range(MOST_VARINT):
        if at + count >= len(data):
            raise ValueError("a number in it does not end")
        byte = data[at + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value & (2**64 - 1), at + count + 1
    raise ValueError("a number in it is too long")


def signed(value: int) -> int:
    """Return a varint as an int64, which is how negative numbers are written."""
    return value - 2**64 if value >= 2**63 else value


def fields(data: bytes | memoryview) -> Iterator[Field]:
    """Yield the fields of a message in the order in which they are written. Raises ValueError if it is none."""
    data, at = memoryview(data), 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if not number:
            raise ValueError("a field in it has no number")
        if kind == VARINT:
            value, at = varint(data, at)
            yield Field(number, kind, value)
        elif kind == BYTES:
            size, at = varint(data, at)
            if size > len(data) - at:
                raise ValueError("a field in it is longer than the message")
            yield Field(number, kind, 0, data[at : at + size])
            at += size
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
            if size > len(data) - at:
                raise ValueError("a field in it is longer than the message")
            yield Field(number, kind, int.from_bytes(data[at : at + size], "little"), data[at : at + size])
            at += size
        else:
            raise ValueError("a field in it has an unknown type")


def spans(file: IO[bytes], start: int, size: int) -> Iterator[Span]:
    """Yield the fields of a message in a file, whose bytes are not read. Raises ValueError as ``fields`` does."""
    at, end = start, start + size
    while at < end:
        file.seek(at)
        head = file.read(min(2 * MOST_VARINT, end - at))
        key, used = varint(head, 0)
        number, kind = key >> 3, key & 7
        if not number:
            raise ValueError("a field in it has no number")
        if kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
            yield Span(number, kind, int.from_bytes(head[used : used + length], "little"), at + used, length)
        elif kind == VARINT:
            value, used = varint(head, used)
            length = 0
            yield Span(number, kind, value)
        elif kind == BYTES:
            length, used = varint(head, used)
            if length > end - at - used:
                raise ValueError("a field in it is longer than the message")
            yield Span(number, kind, 0, at + used, length)
        else:
            raise ValueError("a field in it has an unknown type")
        at += used + length
    if at != end:
        raise ValueError("a field in it is longer than the message")
