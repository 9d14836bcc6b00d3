"""Operations as they were recorded, the memory they touch, and calls that were saved."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from detaudit import wire
from detaudit.model import MOST_OPERANDS, Obstacle, Operand
from detaudit.runs.log import Process
from detaudit.runs.log_records import UNREADABLE

# Decode an instrumentation log; wire.py describes its lines.


class OpLine(msgspec.Struct, frozen=True, tag_field="k", tag="op"):
    """An operation: ``ins`` are (digest, storage), ``outs`` (digest, storage, whether all of it was written).

    ``scalars`` are the numbers that it is given, by the place or the name of the argument.

    If it is only ``listed``, its tensors were not recorded.
    """

    n: int
    thread: str
    step: int
    op: str
    ins: tuple[tuple[str, int], ...]
    outs: tuple[tuple[str, int, bool], ...]
    file: str = ""
    line: int = 0
    key: str = ""
    node: str = ""
    module: str = ""
    backward: bool = False
    random: bool = False
    uninitialized: bool = False
    shared: tuple[int, ...] = ()
    state: str = ""
    scalars: dict[str, str] = {}
    listed: bool = False

    @property
    def is_collective(self) -> bool:
        """Whether its results also depend on what the other ranks give it."""
        return self.op.startswith("c10d.")

    @property
    def signature(self) -> tuple[str, str, int, int]:
        """What is equal if two programs do the same: the operation, its line, the number of inputs."""
        return self.op, self.file, self.line, len(self.ins)

    def place_of(self, storage: int) -> int:
        """Return the index of the input in this storage, 0 if there is none."""
        return next((index for index, (_, number) in enumerate(self.ins) if number == storage), 0)

    def updates(self, index: int) -> bool:
        """Whether it writes to the memory of one of its inputs, so that the operations before it matter."""
        return self.ins[index][1] >= 0 and self.ins[index][1] in {number for _, number, _ in self.outs}

    def came_in(self, index: int) -> str | None:
        """Return what it got from outside the framework, if it shows it; some operations do only as their output."""
        return next(
            (shown[index][0] for shown in (self.ins, self.outs) if index < len(shown) and shown[index][0]), None
        )


def differing_number(a: OpLine, b: OpLine, ins: Sequence[int]) -> str:
    """Return the name of the first number that differs, ``""`` if there is none.

    Nor is there one if another of the inputs ``ins``, which differ, or the state of a generator may be why.
    """
    differing = [name for name, value in a.scalars.items() if b.scalars.get(name, value) != value]
    if {str(index + 1) for index in ins} - {name.removeprefix(wire.START) for name in differing} or a.state != b.state:
        return ""
    return next(iter(differing), "")


def operands(a: OpLine | None, b: OpLine | None, side: Literal["ins", "outs"]) -> tuple[Operand, ...]:
    """Return the inputs or the outputs of an operation in two runs, the first few of them; none if one lacks it."""
    if a is None or b is None or a.op != b.op:
        return ()
    pairs = zip(getattr(a, side), getattr(b, side), strict=False)
    return tuple(_operand(one[0], other[0]) for one, other in islice(pairs, MOST_OPERANDS))


def _operand(a: str, b: str) -> Operand:
    dtype, _, shape = (a or b).rpartition(":")[0].rstrip("]").partition("[")
    digests = a.rpartition(":")[2], b.rpartition(":")[2]
    return Operand(dtype=dtype, shape=tuple(int(size) for size in shape.split(",") if size.strip()), digests=digests)


class TensorLine(msgspec.Struct, frozen=True, tag_field="k", tag="tensor"):
    """A tensor of the requested operation; its bytes are in ``file``, next to the log."""

    role: str
    digest: str
    dtype: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]{1,64}\Z")]
    shape: tuple[Annotated[int, Meta(ge=0)], ...]
    file: Annotated[str, Meta(pattern=r"^[^/\x00]+\Z")]


_DECODER = msgspec.json.Decoder(OpLine | TensorLine)
_OURS = (b'{"k":"op"', b'{"k":"tensor"')


def path_of(folder: Path, process: Process) -> Path | None:
    """Return the second file of a process of the run that is kept in ``folder``, None if it left none."""
    paths = sorted((folder / wire.LOGS).glob(f"{process.hello.pid}.*{wire.OPS_SUFFIX}"))
    return paths[-1] if paths else None


def read(path: Path | None) -> Iterator[OpLine | TensorLine]:
    """Yield the operations and tensors of a file, up to the first that is torn or cannot be decoded."""
    if path is None:
        return
    with path.open("rb") as file:
        for raw in file:
            try:
                yield _DECODER.decode(raw)
            except msgspec.ValidationError:
                if raw.startswith(_OURS):  # otherwise a line of a different level
                    return
            except UNREADABLE:
                return


def operations(path: Path | None) -> Iterator[OpLine]:
    """Yield the operations of a file."""
    return (line for line in read(path) if isinstance(line, OpLine))


# The memory of a run as its operations arrive: the last writer of each storage, and the contents seen.


MOST_KEPT = 200_000
"""How many storages and digests are remembered of each run."""


@dataclass(frozen=True)
class Input:
    """The last writer of a storage, and who took it uninitialized if nobody has written all of it."""

    writer: OpLine | None
    uninitialized: OpLine | None


@dataclass(frozen=True)
class Entry:
    """An operation, and what was known about each of its inputs before."""

    op: OpLine
    inputs: tuple[Input, ...]


@dataclass
class MemoryState:
    """What is known about the memory of a run. The least recently used entries are forgotten."""

    writers: OrderedDict[int, OpLine] = field(default_factory=OrderedDict)
    uninitialized: OrderedDict[int, OpLine] = field(default_factory=OrderedDict)
    seen: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def take(self, op: OpLine) -> Entry:
        """Add the next operation, and return it with what was known about its inputs before."""
        inputs = tuple(Input(self.writers.get(storage), self.uninitialized.get(storage)) for _, storage in op.ins)
        used = {storage for _, storage in op.ins}
        for _, storage, complete in op.outs:
            if storage < 0:
                continue
            if op.uninitialized and storage not in used:
                self.uninitialized[storage] = op
            elif complete or storage not in used:
                self.uninitialized.pop(storage, None)
            self.writers[storage] = op
            self.writers.move_to_end(storage)
        for digest in [digest for digest, _ in op.ins] + [digest for digest, _, _ in op.outs]:
            self.seen[digest] = None
        for kept in (self.writers, self.uninitialized, self.seen):
            while len(kept) > MOST_KEPT:
                kept.popitem(last=False)
        return Entry(op, inputs)


# Read the call of an operation that an instrumented run saved; recorder/replay describes its line.


_CALL_LINE = b'{"k":"call"'


class Storage(msgspec.Struct, frozen=True):
    """The memory of tensors of torch: where its bytes are, next to the log; ``dtype`` is that of the first tensor."""

    file: Annotated[str, Meta(pattern=r"^[^/\x00]+\Z")]
    dtype: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]{1,64}\Z")]
    bytes: Annotated[int, Meta(ge=0)]
    device: str


class SavedInput(msgspec.Struct, frozen=True):
    """An input of an operation of TensorFlow: a value, or a variable with this value."""

    kind: Literal["variable", "value"]
    file: Annotated[str, Meta(pattern=r"^[^/\x00]+\Z")]
    dtype: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]{1,64}\Z")]
    shape: tuple[Annotated[int, Meta(ge=0)], ...]


class Call(msgspec.Struct, frozen=True, tag_field="k", tag="call"):
    """What the auditor reads of a call; the process that repeats it reads the rest."""

    framework: Literal["torch", "tensorflow"]
    op: str
    obstacle: Obstacle | None = None
    detail: str = ""
    python: str = ""
    backward: bool = False
    args: Any = None
    kwargs: Any = None
    storages: tuple[Storage, ...] = ()
    modules: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    node: str = ""
    inputs: tuple[SavedInput, ...] = ()


@dataclass(frozen=True)
class Saved:
    """A call, the line as it was written, and the folder of its files."""

    call: Call
    raw: dict[str, Any]
    folder: Path

    def bytes_of(self, file: str) -> bytes:
        """Return the bytes of a file of the call. Raises OSError."""
        return (self.folder / file).read_bytes()

    def discard(self) -> None:
        """Remove the files of the call."""
        files = [one.file for one in self.call.storages] + [one.file for one in self.call.inputs]
        for file in files:
            (self.folder / file).unlink(missing_ok=True)


def read_call(path: Path | None) -> Saved | None:
    """Return the call in an instrumentation log, None if there is none that can be decoded."""
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            raw = next((line for line in file if line.startswith(_CALL_LINE)), None)
        return Saved(msgspec.json.decode(raw, type=Call), msgspec.json.decode(raw), path.parent) if raw else None
    except (OSError, *UNREADABLE):
        return None
