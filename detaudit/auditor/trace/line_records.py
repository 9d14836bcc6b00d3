"""What a run that was watched line by line left, as wire.py lays it out, decoded."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from detaudit.auditor.evidence.event_records import Line


class Stretch(Line, frozen=True, tag="path"):
    """Lines that one thread runs one after the other: from now on it calls them by this number."""

    thread: str
    id: int
    lines: tuple[tuple[str, tuple[int, ...]], ...]


class Ran(Line, frozen=True, tag="line"):
    """What a thread ran in a step, or in a part of one."""

    thread: str
    step: int
    paths: tuple[tuple[int, int], ...]
    more: tuple[int, str] | None = None
    ended: bool = False


class Assigned(Line, frozen=True, tag="assigned"):
    """What a variable held after a line: the ``at``-th that its thread ran."""

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
    """A file below the working directory that a line of the user's code opened to read."""

    path: str
    file: str
    line: int


DECODER = msgspec.json.Decoder(Stretch | Ran | Assigned | Opened)


def watched(path: Path) -> Iterator[Line]:
    """Yield the lines of these kinds in a file, up to the first that is torn."""
    with path.open("rb") as file:
        for raw in file:
            try:
                yield DECODER.decode(raw)
            except msgspec.ValidationError:
                continue  # of another kind
            except msgspec.DecodeError:
                return
