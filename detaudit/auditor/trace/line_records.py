"""Decode the lines of user code that an instrumented run recorded; wire.py describes them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from detaudit.auditor.evidence.event_records import UNREADABLE, Line

_Count: TypeAlias = Annotated[int, Meta(ge=1)]
_Lines: TypeAlias = Annotated[tuple[int, ...], Meta(min_length=1)]


class Stretch(Line, frozen=True, tag="path"):
    """A sequence of lines that a thread ran; from here on, its number stands for it."""

    thread: str
    id: int
    lines: Annotated[tuple[tuple[str, _Lines], ...], Meta(min_length=1)]


class Ran(Line, frozen=True, tag="line"):
    """The lines that a thread ran in a step, or in a part of one."""

    thread: str
    step: int
    paths: tuple[tuple[int, _Count], ...]
    more: tuple[_Count, str] | None = None
    ended: bool = False


class Assigned(Line, frozen=True, tag="assigned"):
    """The value of a variable after a line, the ``at``-th that its thread ran."""

    n: int
    thread: str
    at: int
    step: int
    file: str
    line: int
    name: str
    digest: str
    bag: str = ""
    text: str = ""


class Opened(Line, frozen=True, tag="opened"):
    """A file below the working directory that a line of user code opened for reading."""

    path: str
    file: str
    line: int


DECODER = msgspec.json.Decoder(Stretch | Ran | Assigned | Opened)


def watched(path: Path) -> Iterator[Line]:
    """Yield the lines of these kinds in a file, up to the first torn one."""
    with path.open("rb") as file:
        for raw in file:
            try:
                yield DECODER.decode(raw)
            except msgspec.ValidationError:
                continue  # of another kind
            except UNREADABLE:
                return
