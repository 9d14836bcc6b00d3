"""Read images and documents without what says when and by which program they were made, and without random IDs.

Pixels are compared as they are encoded, PNG's as they are before compression.
"""

import itertools
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from detaudit.runs.formats import PIECE, PIXELS, Part, documents, pieces, unique
from detaudit.runs.formats import values as single

MOST_BYTES = 256 * 2**20
"""Bytes of a file that is read at once."""

MOST_CHUNKS = 100_000

_DATE = re.compile(rb"\d{4}[:-]\d\d[:-]\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
"""As in Exif, https://www.cipa.jp/std/documents/e/DC-X008-Translation-2019-E.pdf, 4.6.5, and in XMP."""


def _undated(data: bytes) -> bytes:
    return _DATE.sub(b"", data)


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise EOFError("it ends too early")
    return data


def _data(path: Path) -> bytes:
    if path.stat().st_size > MOST_BYTES:
        raise ValueError("it is too large")
    return path.read_bytes()


# -------------------------------------------------------------------------------------------------------------- PNG


_PNG = b"\x89PNG\r\n\x1a\n"
_WRITTEN_BY = ("software", "creation time", "source", "date:create", "date:modify", "date:timestamp")
"""https://www.w3.org/TR/png-3/#11keywords, and what ImageMagick adds."""


def is_png(head: bytes, path: Path) -> bool:
    """Return whether this is a PNG: https://www.w3.org/TR/png-3/#5PNG-file-signature."""
    return head.startswith(_PNG)


def png_parts(path: Path) -> Iterator[Part]:
    """See Format.parts. Checksums are not checked."""
    return unique(_png(path))


def _png(path: Path) -> Iterator[Part]:
    with path.open("rb") as file:
        _exactly(file, len(_PNG))
        for is_pixels, chunks in itertools.groupby(_chunks(file, path.stat().st_size), lambda one: one[0] == "IDAT"):
            if is_pixels:
                yield Part(PIXELS, _inflated(data for _, data in chunks))
            else:
                for kind, data in chunks:
                    yield from _chunk(kind, data)
        if rest := file.read(PIECE):
            yield Part("after the image", itertools.chain([rest], pieces(file)))


def _chunks(file: IO[bytes], size: int) -> Iterator[tuple[str, bytes]]:
    while True:
        length = int.from_bytes(_exactly(file, 4), "big")
        kind = _exactly(file, 4).decode("latin-1")
        if length > min(size, MOST_BYTES):
            raise EOFError("it ends too early")
        data = _exactly(file, length)
        _exactly(file, 4)
        if kind == "IEND":
            return
        yield kind, data


def _inflated(compressed: Iterable[bytes]) -> Iterator[bytes]:
    inflate = zlib.decompressobj()
    for data in compressed:
        while data and not inflate.eof:
            yield inflate.decompress(data, PIECE)
            data = inflate.unconsumed_tail


def _chunk(kind: str, data: bytes) -> Iterator[Part]:
    if kind in ("tEXt", "zTXt", "iTXt"):
        keyword, _, value = data.partition(b"\0")
        name = single.printable(keyword.decode("latin-1"))
        if name.lower() not in _WRITTEN_BY:
            yield single.text(f"text {name}", _undated(value).decode("utf-8", "backslashreplace"))
    elif kind != "tIME":
        yield single.opaque(
            "header" if kind == "IHDR" else f"chunk {single.printable(kind)}",
            _undated(data) if kind == "eXIf" else data,
        )


# ------------------------------------------------------------------------------------- JPEG, GIF, BMP, TIFF and WebP


def is_jpeg(head: bytes, path: Path) -> bool:
    """Return whether this is a JPEG: https://www.w3.org/Graphics/JPEG/itu-t81.pdf, annex B."""
    return head.startswith(b"\xff\xd8\xff")


def jpeg_parts(path: Path) -> Iterator[Part]:
    """See Format.parts. Comments are left out, and the dates in what programs add."""
    return unique(_jpeg(path))


def _jpeg(path: Path) -> Iterator[Part]:
    start_of_scan, comment, applications = 0xDA, 0xFE, range(0xE0, 0xF0)
    with path.open("rb") as file:
        _exactly(file, 2)
        for _ in range(MOST_CHUNKS):
            mark = _exactly(file, 2)
            while mark == b"\xff\xff":  # fill bytes
                mark = mark[1:] + _exactly(file, 1)
            if mark[0] != 0xFF:
                raise ValueError("it has no marker where one should be")
            if mark[1] == start_of_scan:
                yield Part(PIXELS, pieces(file))
                return
            data = _exactly(file, max(0, int.from_bytes(_exactly(file, 2), "big") - 2))
            if mark[1] != comment:
                undated = _undated(data) if mark[1] in applications else data
                yield single.opaque(f"segment {mark[1]:X}", undated)
        raise ValueError("it has too many segments")


def is_gif(head: bytes, path: Path) -> bool:
    """Return whether this is a GIF: https://www.w3.org/Graphics/GIF/spec-gif89a.txt."""
    return head.startswith((b"GIF87a", b"GIF89a"))


def gif_parts(path: Path) -> Iterator[Part]:
    """See Format.parts. Comments are left out."""
    data = _data(path)
    at = 13 + _colors(data[10:11])
    yield single.opaque("header", data[6:at])
    frame = 0
    frames: list[bytes] = []
    while at < len(data) and data[at] != 0x3B:
        start = at
        if data[at] == 0x21:  # an extension
            comment = data[at + 1 : at + 2] == b"\xfe"
            at = _sub_blocks_end(data, at + 2)
            if not comment:
                frames.append(data[start:at])
        elif data[at] == 0x2C:
            at = _sub_blocks_end(data, at + 11 + _colors(data[at + 9 : at + 10]))
            frame += 1
            yield Part(f"frame {frame}", iter([*frames, data[start:at]]))
            frames = []
        else:
            raise ValueError("it has no block where one should be")
    if frames:
        yield Part("end", iter(frames))


def _colors(flags: bytes) -> int:
    """Return the size of the table of colors that these flags announce."""
    if not flags:
        raise EOFError("it ends too early")
    return 3 * 2 ** ((flags[0] & 7) + 1) if flags[0] & 0x80 else 0


def _sub_blocks_end(data: bytes, at: int) -> int:
    while at < len(data):
        size = data[at]
        at += 1 + size
        if not size:
            return at
    raise EOFError("it ends too early")


def is_bmp(head: bytes, path: Path) -> bool:
    """Return whether this is a bitmap of Windows, whose size is in its header.

    https://learn.microsoft.com/windows/win32/api/wingdi/ns-wingdi-bitmapfileheader
    """
    return head.startswith(b"BM") and int.from_bytes(head[2:6], "little") == path.stat().st_size


def bmp_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    with path.open("rb") as file:
        yield single.opaque("header", _exactly(file, 54))
        yield Part(PIXELS, pieces(file))


def is_tiff(head: bytes, path: Path) -> bool:
    """Return whether this is a TIFF: https://www.itu.int/itudoc/itu-t/com16/tiff-fx/docs/tiff6.pdf, section 2."""
    return head.startswith((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"))


def tiff_parts(path: Path) -> Iterator[Part]:
    """See Format.parts. All of it is one part, without dates."""
    yield single.opaque("", _undated(_data(path)))


def is_webp(head: bytes, path: Path) -> bool:
    """Return whether this is a WebP: https://developers.google.com/speed/webp/docs/riff_container."""
    return head.startswith(b"RIFF") and head[8:12] == b"WEBP"


def webp_parts(path: Path) -> Iterator[Part]:
    """See Format.parts. Dates in Exif and XMP are left out."""
    return unique(_webp(path))


def _webp(path: Path) -> Iterator[Part]:
    data, at = _data(path), 12
    while at < len(data):
        kind, size = data[at : at + 4].decode("latin-1").strip(), int.from_bytes(data[at + 4 : at + 8], "little")
        chunk = data[at + 8 : at + 8 + size]
        if len(chunk) < size:
            raise EOFError("it ends too early")
        yield single.opaque(f"chunk {single.printable(kind)}", _undated(chunk) if kind in ("EXIF", "XMP") else chunk)
        at += 8 + size + size % 2


# -------------------------------------------------------------------------------------------------------------- SVG


_SVG_DATE = re.compile(r"<dc:date>[^<]*</dc:date>|<!--[^>]*\d{4}-\d\d-\d\d[^>]*-->")
_RANDOM_ID = re.compile(r"[A-Za-z][A-Za-z_]*(?:\d+_\d+_)?[0-9a-f]{10,64}")
"""matplotlib's IDs: a letter or a word, then digits of a hash with a random salt, see ``svg.hashsalt``."""

_ID = re.compile(r"""(?:\bid=|xlink:href=|\bhref=|\burl\()["']?#?([\w-]+)""")


def is_svg(head: bytes, path: Path) -> bool:
    """Return whether this is an SVG, perhaps after a declaration, comments and a type."""
    start = head[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    return start.startswith((b"<?xml", b"<!DOCTYPE svg", b"<!--", b"<svg")) and b"<svg" in head


def svg_parts(path: Path) -> Iterator[Part]:
    """See Format.parts. Dates are left out, and random IDs count by the order in which they appear."""
    ids: dict[str, str] = {}

    def renamed(match: "re.Match[str]") -> str:
        name = match[1]
        if not _RANDOM_ID.fullmatch(name):
            return match[0]
        return match[0][: -len(name)] + ids.setdefault(name, f"id-{len(ids) + 1}")

    with documents.opened(path) as file:
        lines = (_SVG_DATE.sub("", line.rstrip("\r\n")) for line in documents.lines(file))
        yield from unique(iter(documents.of_lines(_ID.sub(renamed, line) for line in lines)))


# -------------------------------------------------------------------------------------------------------------- PDF


_PDF_DATE = re.compile(rb"/(?:CreationDate|ModDate)\s*(?:\((?:[^()\\]|\\.)*\)|<[0-9A-Fa-f]*>)")
_PDF_ID = re.compile(rb"/ID\s*\[\s*(?:(?:<[0-9A-Fa-f\s]*>|\((?:[^()\\]|\\.)*\))\s*){2}\]", re.DOTALL)
_XMP_ID = re.compile(rb"uuid:[0-9A-Fa-f-]{32,36}")
_SUBSET = re.compile(rb"/([A-Z]{6})\+")
_OBJECT = re.compile(rb"(?:^|(?<=[\r\n]))(\d{1,10}) (\d{1,5}) obj\b")
_CROSS_REFERENCES = re.compile(rb"(?<=[\r\n])xref\s+(?:[\d fn\r\n]+)(?=trailer)|startxref\s+\d+")


def is_pdf(head: bytes, path: Path) -> bool:
    """Return whether this is a PDF: ISO 32000-1, section 7.5.2."""
    return head.startswith(b"%PDF-")


def pdf_parts(path: Path) -> Iterator[Part]:
    """See Format.parts. Each object is one; streams are compared as they are.

    Dates, the file's ID, where objects are in it, and the random letters before the names of fonts are left out.
    """
    return unique(_pdf(path))


def _pdf(path: Path) -> Iterator[Part]:
    data = _data(path)
    if b"%%EOF" not in data[-4096:]:
        raise EOFError("it ends too early")
    for pattern in (_PDF_DATE, _PDF_ID, _XMP_ID, _CROSS_REFERENCES, _DATE):
        data = pattern.sub(b"", data)
    fonts: dict[bytes, bytes] = {}
    data = _SUBSET.sub(lambda match: fonts.setdefault(match[1], b"/font-%d+" % (len(fonts) + 1)), data)
    yield from _objects(data, _OBJECT.finditer(data))


def _objects(data: bytes, starts: Iterable["re.Match[bytes]"]) -> Iterator[Part]:
    name, at = "header", 0
    for start in starts:
        yield single.opaque(name, data[at : start.start()])
        name, at = f"object {int(start[1])}", start.end()
    yield single.opaque(name, data[at:])
