"""Unpack zlib and the oldest format of LZMA, which joblib writes; formats/archives.py has what others write."""

import lzma
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from detaudit.runs import formats
from detaudit.runs.formats import PIECE, Part, Start, check_unpacked

_LZMA, _ZLIB = b"\x5d\x00\x00", 0x78


def is_packed(start: Start) -> bool:
    """Return whether a file begins as one of these does, and its beginning can be unpacked."""
    head = start.head
    zlib_ = len(head) > 2 and head[0] == _ZLIB and int.from_bytes(head[:2], "big") % 31 == 0  # RFC 1950, section 2.2
    if not zlib_ and not head.startswith(_LZMA):
        return False
    try:
        _unpacker(head).decompress(head[:1024], 1024)
    except (zlib.error, lzma.LZMAError):
        return False
    return True


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    with tempfile.NamedTemporaryFile(prefix="detaudit-") as file:
        unpacked = 0
        for piece in _pieces(path):
            unpacked += len(piece)
            check_unpacked(unpacked, path.stat().st_size)
            file.write(piece)
        file.flush()
        yield from formats.parts(Path(file.name))[1]


def _unpacker(head: bytes) -> Any:
    return lzma.LZMADecompressor() if head.startswith(_LZMA) else zlib.decompressobj()


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        data = file.read(PIECE)
        unpacker = _unpacker(data)
        while not unpacker.eof:
            yield unpacker.decompress(data, PIECE)
            if isinstance(unpacker, lzma.LZMADecompressor):
                data = file.read(PIECE) if unpacker.needs_input else b""
                ended = unpacker.needs_input and not data
            else:
                data = unpacker.unconsumed_tail or file.read(PIECE)
                ended = not data
            if ended and not unpacker.eof:
                raise EOFError("its compressed data ends too early")
