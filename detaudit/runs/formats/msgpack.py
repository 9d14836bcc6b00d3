"""Read MessagePack: https://github.com/msgpack/msgpack/blob/master/spec.md, and the arrays that flax writes in it.

Flax's extensions are those of flax/serialization.py: 1 is an array, a complex number is 2, and 3 is a scalar of NumPy;
each is the shape, the dtype and the bytes, in MessagePack again.
"""

import math
import struct
from collections.abc import Iterator
from pathlib import Path

from detaudit.runs.formats import MOST_DEPTH, Part, Start, extents, number, opaque, text, unique
from detaudit.runs.formats.values import printable

MOST_BYTES = 2**31
MOST_VALUES = 4_000_000
_HEAD_VALUES = 8
"""Values at the start of a file that make sense, by which it is recognized."""

_ARRAY, _COMPLEX, _SCALAR = 1, 2, 3
_FLOATS = {0xCA: ">f", 0xCB: ">d"}
_INTEGERS = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_SIZED = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
"""Bytes of the size of bytes, extensions and texts."""

_COUNTED = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
_CONSTANTS = {0xC0: "nil", 0xC2: "false", 0xC3: "true"}
_DTYPES = {"float32": "<f4", "float64": "<f8", "float16": "<f2", "bfloat16": "<bf16", "bool": "|b1", "complex64": "<c8"}
_DTYPES |= {
    f"{sign}int{8 * size}": f"{'<|'[size == 1]}{code}{size}"
    for sign, code in (("", "i"), ("u", "u"))
    for size in (1, 2, 4, 8)
}


class _EndError(ValueError):
    """The data ends within a value."""


def is_msgpack(start: Start) -> bool:
    """Return whether a file is a map with texts or numbers as keys, and its beginning makes sense."""
    kind = start.head[0]
    if not (0x81 <= kind <= 0x8F or kind in (0xDE, 0xDF)):
        return False
    leaf_count = 0
    try:
        for _ in _Reader(memoryview(start.head)).leaves():
            leaf_count += 1
    except _EndError:
        return start.size > len(start.head)
    except (ValueError, LookupError, struct.error):
        return False
    return leaf_count > 0


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    if path.stat().st_size > MOST_BYTES:
        raise ValueError("it is too large")
    return unique(part for part in _Reader(memoryview(path.read_bytes())).leaves())


class _Reader:
    def __init__(self, data: memoryview) -> None:
        self._data, self._at, self._values = data, 0, 0

    def leaves(self) -> Iterator[Part]:
        """Yield all values that follow one another."""
        count = 0
        while self._at < len(self._data):
            count += 1
            yield from self._value("" if count == 1 else f"value {count}", 0)

    def _take(self, size: int) -> memoryview:
        if size > len(self._data) - self._at:
            raise _EndError("it ends within a value")
        piece = self._data[self._at : self._at + size]
        self._at += size
        return piece

    def _size(self, width: int) -> int:
        return int.from_bytes(self._take(width), "big")

    def _value(self, name: str, depth: int) -> Iterator[Part]:
        self._values += 1
        if self._values > MOST_VALUES or depth > MOST_DEPTH:
            raise ValueError("it holds too many values")
        kind = self._take(1)[0]
        if 0x80 <= kind <= 0x8F or kind in (0xDE, 0xDF):
            count = kind & 0xF if kind <= 0x8F else self._size(_COUNTED[kind])
            if not count:
                yield text(name, "{}")
            for _ in range(count):
                yield from self._value(f"{name}.{self._key()}" if name else self._key(), depth + 1)
        elif 0x90 <= kind <= 0x9F or kind in (0xDC, 0xDD):
            count = kind & 0xF if kind <= 0x9F else self._size(_COUNTED[kind])
            if not count:
                yield text(name, "[]")
            for index in range(count):
                yield from self._value(f"{name}.{index}" if name else str(index), depth + 1)
        elif kind in (0xC7, 0xC8, 0xC9) or 0xD4 <= kind <= 0xD8:
            size = 1 << (kind - 0xD4) if kind >= 0xD4 else self._size(_SIZED[kind])
            code = self._take(1)[0]
            yield _extension(name, code, self._take(size))
        else:
            yield self._single(name, kind)

    def _key(self) -> str:
        kind = self._take(1)[0]
        if not (0xA0 <= kind <= 0xBF or kind in _SIZED or kind < 0x80 or kind >= 0xE0 or kind in _INTEGERS):
            raise ValueError("a key in it is neither a text nor a number")
        part = self._single("", kind)
        return printable(part.text) or b"".join(part.pieces).hex()

    def _single(self, name: str, kind: int) -> Part:
        """Return a number, a text, or bytes."""
        if kind < 0x80 or kind >= 0xE0:
            return number(name, kind if kind < 0x80 else kind - 256)
        if 0xA0 <= kind <= 0xBF or kind in (0xD9, 0xDA, 0xDB):
            data = self._take(kind & 0x1F if kind <= 0xBF else self._size(_SIZED[kind]))
            return text(name, bytes(data).decode("utf-8"))
        if kind in (0xC4, 0xC5, 0xC6):
            return opaque(name, bytes(self._take(self._size(_SIZED[kind]))))
        if kind in _CONSTANTS:
            return text(name, _CONSTANTS[kind])
        layout = _FLOATS.get(kind) or _INTEGERS.get(kind)
        if layout is None:
            raise ValueError("a value in it has an unknown type")
        return number(name, struct.unpack(layout, self._take(struct.calcsize(layout)))[0])


def _extension(name: str, code: int, data: memoryview) -> Part:
    if code == 0xFF and len(data) in (4, 8, 12):  # a time
        seconds = int.from_bytes(data[-8:], "big") if len(data) != 8 else int.from_bytes(data, "big") & (2**34 - 1)
        return number(name, seconds if len(data) != 4 else int.from_bytes(data, "big"))
    if code not in (_ARRAY, _COMPLEX, _SCALAR):
        return opaque(name, bytes([code]) + bytes(data))
    try:
        inner = list(_Reader(data).leaves())
        *shape, kind, content = inner
        if code == _COMPLEX:
            return text(name, f"{kind.text} {content.text}")
        part = Part(
            name,
            content.pieces,
            _DTYPES.get(kind.text, kind.text),
            extents(int(one.text) for one in shape if one.text != "[]"),
        )
    except _EndError as error:
        raise ValueError("an array in it ends too early") from error
    size = int(part.dtype[-1]) if part.dtype[1:2] in "fiubc" and part.dtype[-1].isdigit() else 0
    data_ = b"".join(content.pieces)
    if size and size * math.prod(part.shape) != len(data_):
        raise ValueError("an array in it has another size than its shape")
    return Part(name, iter([data_]), part.dtype, part.shape)
