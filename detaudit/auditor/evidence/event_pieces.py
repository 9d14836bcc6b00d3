"""Read an event log piece by piece, so that a log of any length takes the same memory."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from detaudit.auditor.evidence.event_records import DECODER, UNREADABLE, Line, Torn

SIZE = 2**18
"""The bytes of a piece, but for the rest of its last line."""


class Piece(NamedTuple):
    """Lines of an event log, and the bytes between which they are."""

    start: int
    end: int
    lines: list[Line]


def pieces(path: Path, start: int = 0, end: int | None = None) -> Iterator[Piece]:
    """Yield the lines of an event log up to the first that is torn or cannot be decoded, and then Torn.

    ``start`` and ``end`` are where to begin and to stop, in bytes; a line begins at each of them.
    """
    try:
        with path.open("rb") as file:
            file.seek(start)
            while end is None or start < end:
                last = end is not None and end - start <= SIZE
                raw = file.read((end or 0) - start) if last else file.read(SIZE) + file.readline()
                if not raw:
                    return
                found = decoded(raw)
                yield Piece(start, start + len(raw), found)
                if isinstance(found[-1], Torn):
                    return
                start += len(raw)
    except OSError:
        yield Piece(start, start, [Torn()])


def decoded(raw: bytes) -> list[Line]:
    """Return the lines of a piece that starts with a line, and Torn if one is torn or cannot be decoded."""
    try:
        found: list[Line] = DECODER.decode_lines(raw)
    except UNREADABLE:
        found = []
    # Between two lines, decode_lines passes over what is no line.
    whole = raw.endswith(b"\n") and len(found) == raw.count(b"\n")
    return found if whole else list(_one_by_one(raw))


def _one_by_one(raw: bytes) -> Iterator[Line]:
    try:
        for line in io.BytesIO(raw):
            yield DECODER.decode(line)
            if not line.endswith(b"\n"):
                yield Torn()
    except UNREADABLE:
        yield Torn()
