"""Read DICOM files: each element of the data set by its keyword or tag, dates and times as people write them.

The layout is in DICOM PS3.5, section 7 and annex A, and PS3.10, section 7:
https://dicom.nema.org/medical/dicom/current/output/html/part05.html. UIDs are texts; those that are made up for each
file are told apart by their form.
"""

import re
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from detaudit.runs.formats import MOST_DEPTH, MOST_RATIO, MOST_UNPACKED, Part, pieces, unique
from detaudit.runs.formats import values as single

_PREAMBLE = 128
_MARK = b"DICM"
_ITEM, _END_OF_ITEM, _END_OF_SEQUENCE = (0xFFFE, 0xE000), (0xFFFE, 0xE00D), (0xFFFE, 0xE0DD)
_SYNTAX = (0x0002, 0x0010)
_IMPLICIT, _DEFLATED, _BIG = "1.2.840.10008.1.2", "1.2.840.10008.1.2.1.99", "1.2.840.10008.1.2.2"
_ANY_LENGTH = 0xFFFFFFFF
_MOST_READ = 2**16
"""Bytes of a text; what is longer is compared by its bytes."""

_LONG = frozenset(("OB", "OD", "OF", "OL", "OV", "OW", "SQ", "SV", "UC", "UN", "UR", "UT", "UV"))
"""Representations whose length has four bytes, after two that are reserved."""

_NUMBERS = {
    "FD": "<f8", "FL": "<f4", "OD": "<f8", "OF": "<f4", "OL": "<u4", "OV": "<u8", "OW": "<u2", "SL": "<i4",
    "SS": "<i2", "SV": "<i8", "UL": "<u4", "US": "<u2", "UV": "<u8",
}  # fmt: skip
_TEXTS = frozenset(
    ("AE", "AS", "CS", "DA", "DS", "DT", "IS", "LO", "LT", "PN", "SH", "ST", "TM", "UC", "UI", "UR", "UT")
)

_KNOWN = {
    (0x0002, 0x0003): ("MediaStorageSOPInstanceUID", "UI"),
    (0x0008, 0x0012): ("InstanceCreationDate", "DA"),
    (0x0008, 0x0013): ("InstanceCreationTime", "TM"),
    (0x0008, 0x0018): ("SOPInstanceUID", "UI"),
    (0x0008, 0x0020): ("StudyDate", "DA"),
    (0x0008, 0x0021): ("SeriesDate", "DA"),
    (0x0008, 0x0022): ("AcquisitionDate", "DA"),
    (0x0008, 0x0023): ("ContentDate", "DA"),
    (0x0008, 0x002A): ("AcquisitionDateTime", "DT"),
    (0x0008, 0x0030): ("StudyTime", "TM"),
    (0x0008, 0x0031): ("SeriesTime", "TM"),
    (0x0008, 0x0032): ("AcquisitionTime", "TM"),
    (0x0008, 0x0033): ("ContentTime", "TM"),
    (0x0008, 0x1155): ("ReferencedSOPInstanceUID", "UI"),
    (0x0018, 0x1012): ("DateOfSecondaryCapture", "DA"),
    (0x0018, 0x1014): ("TimeOfSecondaryCapture", "TM"),
    (0x0020, 0x000D): ("StudyInstanceUID", "UI"),
    (0x0020, 0x000E): ("SeriesInstanceUID", "UI"),
    (0x0020, 0x0052): ("FrameOfReferenceUID", "UI"),
    (0x0028, 0x0010): ("Rows", "US"),
    (0x0028, 0x0011): ("Columns", "US"),
    (0x0040, 0xA160): ("TextValue", "UT"),
    (0x0040, 0xA30A): ("NumericValue", "DS"),
    (0x0062, 0x0006): ("SegmentDescription", "ST"),
    (0x3004, 0x000E): ("DoseGridScaling", "DS"),
    (0x3006, 0x0008): ("StructureSetDate", "DA"),
    (0x3006, 0x0009): ("StructureSetTime", "TM"),
    (0x3006, 0x0050): ("ContourData", "DS"),
    (0x5600, 0x0020): ("SpectroscopyData", "OF"),
    (0x7FE0, 0x0008): ("FloatPixelData", "OF"),
    (0x7FE0, 0x0009): ("DoubleFloatPixelData", "OD"),
    (0x7FE0, 0x0010): ("PixelData", "OW"),
}
"""Keyword and representation of elements that differ from file to file or hold results: DICOM PS3.6, section 6."""

_DATE = re.compile(r"(\d{4})(0\d|1[0-2])([0-3]\d)")
_TIME = re.compile(r"([01]\d|2[0-3])([0-5]\d)([0-5]\d(?:\.\d{1,6})?)")
_MOMENT = re.compile(_DATE.pattern + _TIME.pattern + r"([-+]\d{4})?")


def is_dicom(head: bytes, path: Path) -> bool:
    """Return whether a file begins as one of DICOM does."""
    return head.startswith(_MARK, _PREAMBLE)


def dicom_parts(path: Path) -> Iterator[Part]:
    """See Format.parts. Lengths of groups are left out: they change with the digits of UIDs."""
    with path.open("rb") as file:
        yield single.opaque("preamble", file.read(_PREAMBLE))
        file.seek(_PREAMBLE + len(_MARK))
        yield from unique(_file(file, path.stat().st_size))


def _file(file: BinaryIO, size: int) -> Iterator[Part]:
    header = _Reader(file, size)
    yield from header.elements("", group=_SYNTAX[0])
    syntax = header.syntax
    if syntax == _BIG:
        raise ValueError("its numbers are in the order that DICOM has given up")
    if syntax == _DEFLATED:
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        packed = file.read()
        data = unpacker.decompress(packed, min(MOST_UNPACKED, MOST_RATIO * len(packed)))
        if not unpacker.eof:
            raise ValueError("it unpacks to too much, or ends early")
        file, size = BytesIO(data), len(data)
    yield from _Reader(file, size, implicit=syntax == _IMPLICIT).elements("")


class _Reader:
    """Reads elements from where a file is, of one transfer syntax."""

    def __init__(self, file: BinaryIO, size: int, *, implicit: bool = False) -> None:
        self._file, self._size, self._implicit = file, size, implicit
        self.syntax = ""

    def _number(self, size: int) -> int:
        data = self._file.read(size)
        if len(data) < size:
            raise EOFError("it ends within an element")
        return int.from_bytes(data, "little")

    def _tag(self) -> tuple[int, int]:
        return self._number(2), self._number(2)

    def elements(self, prefix: str, end: int | None = None, depth: int = 0, group: int | None = None) -> Iterator[Part]:
        """Yield the elements up to the byte ``end``, the end of an item, or the first of another group."""
        if depth > MOST_DEPTH:
            raise ValueError("it is nested too deeply")
        end = self._size if end is None else end
        while self._file.tell() < end:
            start, tag = self._file.tell(), self._tag()
            if group is not None and tag[0] != group:
                self._file.seek(start)
                return
            kind, length = self._kind_and_length(tag)
            if tag == _END_OF_ITEM:
                return
            keyword = _KNOWN.get(tag, ("", ""))[0] or f"({tag[0]:04X},{tag[1]:04X})"
            after = self._file.tell() + length
            if length != _ANY_LENGTH and after > self._size:
                raise EOFError("it ends within an element")
            if tag[1]:  # else the length of its group
                yield from self._element(prefix + keyword, tag, kind, length, depth)
            if length != _ANY_LENGTH:
                self._file.seek(after)

    def _kind_and_length(self, tag: tuple[int, int]) -> tuple[str, int]:
        if tag in (_ITEM, _END_OF_ITEM, _END_OF_SEQUENCE):
            return "", self._number(4)
        if self._implicit:
            length = self._number(4)
            return ("SQ" if length == _ANY_LENGTH else _KNOWN.get(tag, ("", ""))[1]), length
        kind = self._file.read(2).decode("latin-1")
        if kind in _LONG:
            self._number(2)
            return kind, self._number(4)
        return kind, self._number(2)

    def _element(self, name: str, tag: tuple[int, int], kind: str, length: int, depth: int) -> Iterator[Part]:
        if kind == "SQ" or (length == _ANY_LENGTH and kind == "UN"):
            yield from self._items(name, length, depth)
        elif length == _ANY_LENGTH:
            yield from self._fragments(name)
        elif kind in _NUMBERS:
            dtype = _NUMBERS[kind]
            count, rest = divmod(length, int(dtype[2:]))
            shape = () if count == 1 else (count,)
            yield Part(name, pieces(self._file, length), "" if rest else dtype, () if rest else shape)
        elif length > _MOST_READ or (kind and kind not in _TEXTS):
            yield Part(name, pieces(self._file, length))
        else:
            data = self._file.read(length)
            if tag == _SYNTAX:
                self.syntax = data.rstrip(b"\0 ").decode("latin-1")
            yield from _texts(name, kind, data)

    def _items(self, name: str, length: int, depth: int) -> Iterator[Part]:
        end = self._size if length == _ANY_LENGTH else self._file.tell() + length
        count = 0
        while self._file.tell() < end:
            tag, size = self._tag(), self._number(4)
            if tag == _END_OF_SEQUENCE:
                return
            if tag != _ITEM:
                raise ValueError("a sequence in it holds no items")
            until = None if size == _ANY_LENGTH else self._file.tell() + size
            yield from self.elements(f"{name}.{count}.", until, depth + 1)
            count += 1

    def _fragments(self, name: str) -> Iterator[Part]:
        """Yield the parts of compressed pixels."""
        count = 0
        while (tag := self._tag()) == _ITEM:
            length = self._number(4)
            yield Part(f"{name}.{count}", pieces(self._file, length))
            count += 1
        if tag != _END_OF_SEQUENCE:
            raise ValueError("its pixels have no end")
        self._number(4)


def _texts(name: str, kind: str, data: bytes) -> Iterator[Part]:
    if not kind:  # a text, or a number whose bytes are letters: nothing but a date is rewritten
        text = data.removesuffix(b"\0").decode("latin-1")
        if not (text.isascii() and text.isprintable()):
            yield single.opaque(name, data)
            return
    else:
        text = data.decode("utf-8", "backslashreplace").strip("\0 ")
    many = text.split("\\") if kind not in ("LT", "ST", "UR", "UT") else [text]
    for index, one in enumerate(many):
        value = one.strip()
        dated = _dated(kind, value)
        shown = single.printable(one if dated == value and not kind else dated)
        yield single.number_or_text(name if len(many) == 1 else f"{name}.{index}", shown)


def _dated(kind: str, text: str) -> str:
    """Return a date or a time with what people write between its parts; without a ``kind``, what has their form."""
    if kind in ("DA", "") and (match := _DATE.fullmatch(text)):
        return "-".join(match.groups())
    if kind in ("TM", "") and (match := _TIME.fullmatch(text)):
        return ":".join(match.groups())
    if kind in ("DT", "") and (match := _MOMENT.fullmatch(text)):
        year, month, day, hour, minute, second, zone = match.groups()
        return f"{year}-{month}-{day}T{hour}:{minute}:{second}{zone or ''}"
    return text
