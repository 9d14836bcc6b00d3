"""Read MAT-files of MATLAB's versions 5 to 7: the text in their header, which has a date, and their variables.

The layout is in "MAT-File Format", https://www.mathworks.com/help/pdf_doc/matlab/matfile_format.pdf, section 1: 116
bytes of text, 12 bytes of version and byte order, then elements of 8 bytes of type and size, and their data.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from detaudit.runs.formats import MOST_RATIO, Part, extents, pieces, unique
from detaudit.runs.formats import values as single

Order: TypeAlias = Literal["little", "big"]

_TEXT, _HEADER, _TAG = 116, 128, 8
_MOST_ELEMENTS = 100_000
_MOST_READ = 2**26
"""Bytes of a variable that is taken apart; of a larger one, its bytes are compared."""

_MATRIX, _COMPRESSED = 14, 15
_CHARACTERS, _COMPLEX = 4, 8
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_ENCODINGS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts. An array of numbers or of characters is read with its name, of all else the bytes."""
    return unique(_parts(path))


def _parts(path: Path) -> Iterator[Part]:
    size = path.stat().st_size
    with path.open("rb") as file:
        header = file.read(_HEADER)
        order: Order = "little" if header[-2:] == b"IM" else "big"
        yield single.text("header", header[:_TEXT].decode("latin-1").rstrip(" \0"))
        yield single.opaque("version", header[_TEXT:])
        for count in range(1, _MOST_ELEMENTS + 1):
            tag = file.read(_TAG)
            if not tag:
                return
            length = int.from_bytes(tag[4:], order)
            if len(tag) < _TAG or length > size - file.tell():
                raise EOFError("it ends within a variable")
            kind = int.from_bytes(tag[:4], order)
            if length > _MOST_READ:
                yield Part(f"variable {count}", pieces(file, length))
                continue
            data = file.read(length)
            content = _unpacked(data) if kind == _COMPRESSED else data if kind == _MATRIX else b""
            known = _variable(content, order)
            yield known or single.opaque(f"variable {count}", data)
    raise ValueError("it holds too many variables")


def _unpacked(data: bytes) -> bytes:
    """Return what is compressed in an element, without its tag; nothing if it is far more."""
    unpacker = zlib.decompressobj()
    try:
        unpacked = unpacker.decompress(data, min(_MOST_READ, MOST_RATIO * len(data)))
    except zlib.error:
        return b""
    return unpacked[_TAG:] if unpacker.eof else b""


def _variable(data: bytes, order: Order) -> Part | None:
    """Return an array of numbers or characters, None for all else: cells, structures, objects, what is broken."""
    elements = list(_elements(data, order))
    if len(elements) != 4 or len(elements[0][1]) != _TAG:
        return None
    (_, flags), (_, dimensions), (_, name), (kind, values) = elements
    bits = int.from_bytes(flags[:4], order)
    text, is_complex = bits & 0xFF == _CHARACTERS, bits >> 8 & _COMPLEX
    shape = extents(int.from_bytes(dimensions[at : at + 4], order) for at in range(0, len(dimensions), 4))
    shown = single.printable(name.decode("latin-1"))
    if text and kind in _ENCODINGS:
        marks = "" if _ENCODINGS[kind] in ("latin-1", "utf-8") else "-le" if order == "little" else "-be"
        return single.text(shown, values.decode(_ENCODINGS[kind] + marks, "backslashreplace"))
    if text or is_complex or kind not in _TYPES:
        return None
    dtype = ("<" if order == "little" else ">") + _TYPES[kind]
    return Part(shown, iter([values]), dtype, () if set(shape) == {1} else shape)


def _elements(data: bytes, order: Order) -> Iterator[tuple[int, bytes]]:
    """Yield the types and the data of the elements of a variable; a small one has its data in its tag."""
    at = 0
    while at + _TAG <= len(data):
        kind, size = (int.from_bytes(data[at + one : at + one + 4], order) for one in (0, 4))
        if kind >> 16:
            kind, size, start, end = kind & 0xFFFF, kind >> 16, at + 4, at + _TAG
        else:
            start = at + _TAG
            end = start + -(-size // _TAG) * _TAG
        if start + size > len(data):
            return
        yield kind, data[start : start + size]
        at = end
