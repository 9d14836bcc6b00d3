"""The lines of a trace, as wire.py lays them out, decoded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from detaudit.model import Stage


class Line(msgspec.Struct, frozen=True, tag_field="k"):
    """Any line; ``k`` is its kind."""


class Hello(Line, frozen=True, tag="hello"):
    """The recorder was loaded; see wire.py for this and the other lines."""

    schema: int
    pid: int
    ppid: int
    argv: tuple[str, ...]
    python: str
    rank: int | None
    identity: tuple[int, ...]


class Identity(Line, frozen=True, tag="identity"):
    """Which child of multiprocessing this is, learned after the start."""

    identity: tuple[int, ...]


class Framework(Line, frozen=True, tag="framework"):
    """A framework was imported."""

    name: str
    version: str


class FlagLine(Line, frozen=True, tag="flag"):
    """A flag was applied, or failed."""

    id: str
    state: str
    detail: str


class SourceLine(Line, frozen=True, tag="source"):
    """The script called something that brings or settles randomness."""

    kind: str
    what: str
    file: str
    line: int
    value: str


class Environ(Line, frozen=True, tag="environ"):
    """The script set a variable, or deleted it."""

    name: str
    value: str | None
    file: str
    line: int
    after: tuple[str, ...]


class SettingsLine(Line, frozen=True, tag="settings"):
    """What was in force at the end."""

    values: dict[str, bool | int | str | None]
    environ: dict[str, dict[str, str]]
    files: tuple[str, ...]
    versions: dict[str, str] = {}


class Generators(Line, frozen=True, tag="generators"):
    """The random generators as a training began."""

    states: dict[str, str]


class Event(Line, frozen=True, tag="event"):
    """One stage of one step."""

    fw: str
    step: int
    stage: Stage
    digest: str
    value: str | None


class ProbeLine(Line, frozen=True, tag="probe"):
    """A value that the script asked to have watched, or the gradient that came back through it."""

    name: str
    n: int
    step: int | None
    kind: Literal["value", "gradient"]
    digest: str
    value: str | None


class Final(Line, frozen=True, tag="final"):
    """The weights as they ended."""

    fw: str
    steps: int
    digest: str
    sum: str
    loss: str | None
    params: int
    sparse: bool
    devices: tuple[str, ...]
    weights: tuple[tuple[str, tuple[int, ...], str, str], ...] = ()


class Trouble(Line, frozen=True, tag="trouble"):
    """The recorder failed somewhere."""

    where: str
    error: str


class Bye(Line, frozen=True, tag="bye"):
    """The process ended in order."""

    how: str


DECODER = msgspec.json.Decoder(
    Hello
    | Identity
    | Framework
    | FlagLine
    | SourceLine
    | Environ
    | SettingsLine
    | Generators
    | Event
    | ProbeLine
    | Final
    | Trouble
    | Bye
)


def lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a trace file up to the first that is torn or not understood."""
    with path.open("rb") as file:
        for raw in file:
            try:
                yield DECODER.decode(raw)
            except msgspec.DecodeError:
                return
