"""The passes of a scan, and what their processes answered."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

# Read what the processes of a scan wrote; detaudit/scanner/job.py lays it out.


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
    decoded_lines = []
    for line in lines:
        try:
            decoded_lines.append(msgspec.json.decode(line, type=Line))
        except msgspec.MsgspecError:
            continue
    return Answers(decoded_lines)


# Plan the passes of a scan: processes that differ in their threads, their load, their memory and the switch.


USUAL, ONE_THREAD, MANY_THREADS, SWITCH = "usual", "one-thread", "many-threads", "switch"
"""Phases: as the framework is set up, with one thread, with twice as many threads as usual, with its switch."""

FILLS = (85, 170)
"""Bytes that the C library fills memory with when it is handed out and given back, different in each bit."""

MORE = 5
"""How many times as often an operation is repeated that differs."""


@dataclass(frozen=True)
class PlannedPhase:
    """Repetitions with ``threads`` (0: as many as usual), with the switch or without, at most so many seconds."""

    name: str
    repeats: int
    seconds: float
    threads: int = 0
    switch: bool = False


@dataclass(frozen=True)
class Pass:
    """A process that goes through all operations, or only through those that differed in earlier passes (``again``).

    ``fill`` is one of FILLS, ``load`` the number of busy processes beside it, ``env`` what is set for it besides.
    """

    name: str
    phases: tuple[PlannedPhase, ...]
    fill: int
    load: int = 0
    again: bool = False
    env: tuple[tuple[str, str], ...] = ()


def passes(framework: str, device: str, threads: int, cpus: int, repeats: int) -> tuple[Pass, ...]:
    """Return the passes over a framework's operations.

    torch can change its threads and its switch within a process; on a GPU the switch needs a variable before the
    process starts, and TensorFlow needs a process for each.
    """
    usual = PlannedPhase(USUAL, repeats, 0.06)
    one, many = PlannedPhase(ONE_THREAD, 2, 0.01, threads=1), PlannedPhase(MANY_THREADS, 2, 0.01, threads=2 * threads)
    switch = PlannedPhase(SWITCH, 2, 0.01, switch=True)
    more = PlannedPhase(USUAL, MORE * repeats, 0.5)
    more_switch = PlannedPhase(SWITCH, MORE * repeats, 0.5, switch=True)
    workspace = (("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),) if device != "cpu" else ()
    first, second = FILLS
    if framework == "torch" and device == "cpu":
        return (
            Pass("first", (usual, one, switch), first),
            Pass("loaded", (usual, one, many, switch), second, load=cpus),
            Pass("again", (more, more_switch, PlannedPhase(ONE_THREAD, 3, 0.2, threads=1)), first, again=True),
        )
    return (
        Pass("first", (usual,), first),
        Pass("loaded", (usual,), second, load=cpus),
        Pass("one-thread", (one,), first),
        Pass("one-thread-other-memory", (one,), second),
        Pass("switch", (switch,), first, env=workspace),
        Pass("switch-other-memory", (switch,), second, env=workspace),
        Pass("again", (more,), first, again=True),
        Pass("switch-again", (more_switch,), first, again=True, env=workspace),
    )
