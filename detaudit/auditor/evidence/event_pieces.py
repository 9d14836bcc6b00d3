"""Read an event log piece by piece, so that a log of any length takes the same memory."""

import hashlib
import io
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import IO

from detaudit.auditor.evidence.event_records import DECODER, UNREADABLE, Line, Torn
from detaudit.model import blocks

SIZE = 2**19
"""The bytes that are read at a time, but for the rest of the last line."""

MOST = 4
"""A piece has at most so many times SIZE."""

_STEP = re.compile(rb'"step":([0-9]{1,15}),')


class Piece:
    """Whole lines of an event log, and the bytes between which they are; the last line of a log may be torn."""

    def __init__(self, start: int, raw: bytes) -> None:
        self.start, self.end, self.raw = start, start + len(raw), raw
        self.torn = False

    @cached_property
    def digest(self) -> bytes:
        """The digest of its bytes."""
        return hashlib.sha256(self.raw, usedforsecurity=False).digest()

    @cached_property
    def lines(self) -> list[Line]:
        """The lines up to one that is torn or cannot be decoded, and Torn for it. Then the piece is ``torn``."""
        try:
            found: list[Line] = DECODER.decode_lines(self.raw)
        except UNREADABLE:
            found = []
        # Between two lines, decode_lines passes over what is no line.
        if not self.raw.endswith(b"\n") or len(found) != self.raw.count(b"\n"):
            found = list(_one_by_one(self.raw))
            self.torn = isinstance(found[-1], Torn)
        return found


def pieces(path: Path, start: int = 0, end: int | None = None) -> Iterator[Piece]:
    """Yield an event log up to the first piece that turns out to be torn, or whose bytes cannot be read.

    ``start`` and ``end`` are where to begin and to stop, in bytes; a line begins at each of them. If it can be, a piece
    ends where a block of steps does, so that equal blocks of two logs are equal pieces.
    """
    try:
        with path.open("rb") as file:
            file.seek(start)
            rest = b""
            while more := _more(file, end):
                rest += more
                while cut := _cut(rest):
                    piece = Piece(start, rest[:cut])
                    yield piece
                    if piece.torn:
                        return
                    start, rest = piece.end, rest[cut:]
            if rest:
                yield Piece(start, rest)
    except OSError:
        yield Piece(start, b"")


def _more(file: IO[bytes], end: int | None) -> bytes:
    if end is not None and end - file.tell() <= SIZE:
        return file.read(end - file.tell())
    return file.read(SIZE) + file.readline()


def _cut(raw: bytes) -> int:
    """Return where the first piece ends, 0 if more has to be read to know."""
    first = _STEP.search(raw)
    following = first and raw.find(b'"step":%d,' % blocks.start(blocks.block_of(int(first[1])) + 1), first.end())
    cut = raw.rfind(b"\n", 0, following) + 1 if following and following > 0 else 0
    return cut or (len(raw) if len(raw) > MOST * SIZE else 0)


def _one_by_one(raw: bytes) -> Iterator[Line]:
    try:
        for line in io.BytesIO(raw):
            yield DECODER.decode(line)
            if not line.endswith(b"\n"):
                yield Torn()
    except UNREADABLE:
        yield Torn()
    if not raw:
        yield Torn()
