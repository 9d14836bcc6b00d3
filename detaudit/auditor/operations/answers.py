"""Read what the processes of a scan wrote; detaudit/scanner/job.py lays it out."""

from pathlib import Path

import msgspec

Item = tuple[str, str]
"""An operation, and a type of elements."""


class Framework(msgspec.Struct, frozen=True):
    """The framework in a process: its version, and the threads that it uses."""

    version: str
    threads: int


class Phase(msgspec.Struct, frozen=True):
    """How often each digest was seen, or the error that the first repetition raised."""

    results: dict[str, int] = {}
    error: str = ""


class Kept(msgspec.Struct, frozen=True):
    """Files with the bytes of one tensor of different results."""

    part: str
    dtype: str
    shape: tuple[int, ...]
    files: tuple[str, ...]


class Case(msgspec.Struct, frozen=True):
    """One direction of a sample, in the phases of one process. ``size`` is how the sample was enlarged."""

    op: str
    dtype: str
    sample: int
    direction: str
    size: tuple[int, ...] | None
    inputs: str
    shapes: str
    phases: dict[str, Phase]
    kept: Kept | None = None

    @property
    def key(self) -> tuple[str, str, int, str]:
        """What identifies it in all processes."""
        return self.op, self.dtype, self.sample, self.direction


class Skipped(msgspec.Struct, frozen=True):
    """An item that could not be repeated."""

    op: str
    dtype: str
    error: str


class Crashed(msgspec.Struct, frozen=True):
    """An item that ended its process, with this exit code, or that was ended because it took too long (null)."""

    op: str
    dtype: str
    exit_code: int | None


class Line(msgspec.Struct, frozen=True):
    """One line: one of these."""

    framework: Framework | None = None
    item: Item | None = None
    begin: Item | None = None
    end: Item | None = None
    case: Case | None = None
    skipped: Skipped | None = None
    crashed: Crashed | None = None


class Answers:
    """The lines of one pass, of all the processes that it took."""

    def __init__(self, lines: list[Line]) -> None:
        self.framework = next((line.framework for line in lines if line.framework), None)
        self.items = [line.item for line in lines if line.item]
        self.cases = list({line.case.key: line.case for line in lines if line.case}.values())
        self.skipped = [line.skipped for line in lines if line.skipped]
        self.crashed = [line.crashed for line in lines if line.crashed]
        ended = {line.end for line in lines if line.end}
        self.finished = ended | {(one.op, one.dtype) for one in self.crashed}
        begun = [line.begin for line in lines if line.begin]
        self.broken = begun[-1] if begun and begun[-1] not in self.finished else None

    def sizes(self) -> dict[str, tuple[int, ...] | None]:
        """Return how each sample was enlarged."""
        return {f"{case.op}|{case.dtype}|{case.sample}": case.size for case in self.cases}


def read(path: Path) -> Answers:
    """Read the lines of a pass; none if there is no file. A line that was cut off by a crash is left out."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    found = []
    for line in lines:
        try:
            found.append(msgspec.json.decode(line, type=Line))
        except msgspec.MsgspecError:
            continue
    return Answers(found)
