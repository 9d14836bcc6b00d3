"""Long logs in blocks of digests, read piece by piece."""

import contextlib
import hashlib
import io
import math
import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import IO, Annotated, NamedTuple, NoReturn, Protocol, TypeAlias

import msgspec
from msgspec import Meta

from detaudit.errors import StorageError
from detaudit.model import Number, Stage, as_number, blocks
from detaudit.model.blocks import (
    FAN_OUT,
    BlockedSteps,
    Digests,
    HeldSteps,
    HeldTree,
    Node,
    Pairs,
    Steps,
    Tree,
    block_of,
    digest,
    start,
)
from detaudit.runs.log_records import DECODER, UNREADABLE, Event, Line, Torn

# Read an event log piece by piece, so that a log of any length takes the same memory.


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
            lines: list[Line] = DECODER.decode_lines(self.raw)
        except UNREADABLE:
            lines = []
        # Between two lines, decode_lines passes over what is no line.
        if not self.raw.endswith(b"\n") or len(lines) != self.raw.count(b"\n"):
            lines = list(_one_by_one(self.raw))
            self.torn = isinstance(lines[-1], Torn)
        return lines


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
        return file.read(max(0, end - file.tell()))  # a damaged tree may name an end before its start
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


# What a long training left in its event log: blocks of steps that are read there when they are asked for.


class EventsInMemory:
    """Events of one training that are held in memory."""

    def __init__(self) -> None:
        self.digests: dict[Stage, dict[int, tuple[str, ...]]] = {}
        self.losses: dict[int, Number] = {}

    def add(self, events: Iterable[Event]) -> None:
        """Add events. A step may have several of one stage, such as the weights of two models."""
        for event in events:  # of a long training, this runs millions of times
            steps = self.digests.get(event.stage)
            if steps is None:
                steps = self.digests[event.stage] = {}
            before = steps.get(event.step)
            steps[event.step] = (event.digest,) if before is None else (*before, event.digest)
            if event.value is not None:
                self.losses[event.step] = as_number(float.fromhex(event.value))


class Origin(NamedTuple):
    """The event log, the framework and the lane of a training."""

    path: Path
    framework: str
    lane: int

    def in_memory(self) -> EventsInMemory:
        """Return all that this training recorded."""
        memory = EventsInMemory()
        for piece in pieces(self.path):
            memory.add(self.among(piece.lines))
        return memory

    def among(self, lines: Iterable[Line]) -> Iterator[Event]:
        """Yield the events of this training."""
        for line in lines:
            if isinstance(line, Event) and line.lane == self.lane and line.fw == self.framework:
                yield line


KnownLosses: TypeAlias = dict[tuple[object, ...], tuple[dict[Stage, bytes], Mapping[int, Number]]]
"""The losses of blocks, with their digests, by what event logs have there: equal blocks are read once."""


class OfStage(Protocol):
    """The digests of the blocks of one stage, and their tree."""

    @property
    def digests(self) -> Mapping[int, bytes]:
        """One digest for each block, by its number."""

    @property
    def tree(self) -> Tree:
        """The tree of these digests."""


class LoggedBlocks:
    """The blocks of one training: their digests, and the bytes of its event log between which each of them is.

    ``last_loss`` is the step of the last loss and the loss, None if there is none. If the event log is not there when a
    block is asked for, ``fetch`` is to bring it.
    """

    stages: Mapping[Stage, OfStage]
    places: Mapping[int, tuple[int, int]]
    last_loss: tuple[int, Number] | None

    def __init__(self, origin: Origin, fetch: Callable[[], None] = lambda: None) -> None:
        self._origin, self._fetch = origin, fetch
        self._latest: tuple[int, EventsInMemory] = -1, EventsInMemory()

    @property
    def is_there(self) -> bool:
        """Whether the event log is there."""
        return self._origin.path.exists()

    def block(self, number: int) -> EventsInMemory:
        """Return the events of a block.

        Raises StorageError if the event log is not there, or not the same any more.
        """
        if self._latest[0] != number:
            self._latest = number, self._read(number)
        return self._latest[1]

    def losses(self, number: int, known: KnownLosses) -> Mapping[int, Number]:
        """Return the losses of a block; ``known`` has those that were read before, also from other event logs.

        Raises StorageError as ``block`` does.
        """
        block_pieces = self._pieces(number)
        key = (number, self._origin.framework, self._origin.lane, *(piece.digest for piece in block_pieces))
        if key not in known:
            known[key] = self._digests(number), self._held(number, block_pieces).losses
        digests, losses = known[key]
        if digests != self._digests(number):
            self._refuse()
        return losses

    def _read(self, number: int) -> EventsInMemory:
        return self._held(number, self._pieces(number))

    def _pieces(self, number: int) -> list[Piece]:
        if not self.is_there:
            self._fetch()
        if not self.is_there:
            hint = "Put it back: the steps are in it. With `detaudit plan --records logs`, each run has its event logs."
            raise StorageError(f"{self._origin.path} is gone, or was not fetched", hint)
        return list(pieces(self._origin.path, *self.places.get(number, (0, 0))))

    def _held(self, number: int, block_pieces: Iterable[Piece]) -> EventsInMemory:
        events, end = EventsInMemory(), start(number + 1)
        first = start(number) if number else -math.inf
        for piece in block_pieces:
            events.add(event for event in self._origin.among(piece.lines) if first <= event.step < end)
        for stage, known in self.stages.items():
            if HeldSteps(events.digests.get(stage, {})).digests.get(number) != known.digests.get(number):
                self._refuse()
        return events

    def _digests(self, number: int) -> dict[Stage, bytes]:
        digests = {stage: one.digests.get(number) for stage, one in self.stages.items()}
        return {stage: digest for stage, digest in digests.items() if digest is not None}

    def _refuse(self) -> NoReturn:
        hint = "Leave the results folder as it is while it is compared."
        raise StorageError(f"{self._origin.path} has changed since it was read", hint)


class LoggedSteps(BlockedSteps):
    """The digests of one stage of a training in an event log."""

    def __init__(self, log: LoggedBlocks, stage: Stage) -> None:
        self._log, self._stage = log, stage

    @property
    def digests(self) -> Mapping[int, bytes]:
        """See BlockedSteps."""
        return self._log.stages[self._stage].digests

    @property
    def tree(self) -> Tree:
        """See BlockedSteps."""
        return self._log.stages[self._stage].tree

    def block(self, number: int) -> Steps:
        """See BlockedSteps. Raises StorageError if the event log is not the same any more."""
        return self._log.block(number).digests.get(self._stage, {}) if number in self.digests else {}


class LoggedLosses(Mapping[int, Number]):
    """The losses of a training in an event log, by ascending step; the last one is always known."""

    def __init__(self, log: LoggedBlocks) -> None:
        self.log = log

    def __getitem__(self, step: int) -> Number:
        last = self.log.last_loss
        return last[1] if last and last[0] == step else self.log.block(block_of(step)).losses[step]

    def __iter__(self) -> Iterator[int]:
        for number in sorted(self.log.places):
            yield from self.log.block(number).losses

    def __reversed__(self) -> Iterator[int]:
        last = self.log.last_loss
        if last is not None:
            yield last[0]
            for number in sorted(self.log.places, reverse=True):
                yield from (step for step in reversed(self.log.block(number).losses) if step != last[0])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return self.log.last_loss is not None

    def in_memory(self, known: KnownLosses) -> dict[int, Number]:
        """Return all losses. Raises StorageError if the event log is not the same any more."""
        losses: dict[int, Number] = {}
        for number in sorted(self.log.places):
            losses.update(self.log.losses(number, known))
        return losses


# What a long training recorded: digests of its blocks, and where they are in its event log, as that is read.


_STEP_OF = itemgetter(0)


class StageBlocks:
    """The digests of the blocks of one stage, of which the last one still grows."""

    def __init__(self) -> None:
        self.digests: dict[int, bytes] = {}
        self.last = -1
        self._hash = blocks.hashed()

    @property
    def tree(self) -> Tree:
        """See OfStage."""
        return HeldTree(self.digests)

    def add(self, number: int, pairs: Pairs) -> None:
        """Add ascending pairs of one block, none of which is before the last step."""
        if number not in self.digests:
            self._hash = blocks.hashed()
        self._hash.update(blocks.text(pairs))
        self.digests[number] = self._hash.digest()
        self.last = pairs[-1][0]

    def copy(self, number: int) -> "StageBlocks":
        """Return this stage with its last block alone."""
        stage_blocks = StageBlocks()
        stage_blocks.digests, stage_blocks.last, stage_blocks._hash = (
            {number: self.digests[number]},
            self.last,
            self._hash.copy(),
        )
        return stage_blocks

    def take(self, number: int, block: "StageBlocks") -> None:
        """Add a block that comes after all others."""
        self.digests[number] = block.digests[number]
        self.last, self._hash = block.last, block._hash.copy()


class Block(NamedTuple):
    """A whole block of a training; ``last_loss`` is None if it has none."""

    framework: str
    lane: int
    number: int
    stages: Mapping[Stage, StageBlocks]
    last_loss: tuple[int, Number] | None


class Log(LoggedBlocks):
    """The blocks of one training as its event log is read.

    ``ordered`` says whether the steps of each stage ascend, as the recorder writes them. Otherwise the blocks are not
    known, and the events must be held.
    """

    def __init__(self, origin: Origin) -> None:
        super().__init__(origin)
        self.ordered = True
        self.stages: defaultdict[Stage, StageBlocks] = defaultdict(StageBlocks)
        self.places: dict[int, tuple[int, int]] = {}
        self.last_loss: tuple[int, Number] | None = None
        self._alone: int | None = None

    def take_held(self, memory: EventsInMemory, start: int, end: int) -> None:
        """Take over what was held, which lies between these bytes of the event log."""
        for stage, steps in memory.digests.items():
            self._add(stage, blocks.pairs(steps), start, end)
        losses = list(memory.losses.items())
        self._lose(losses, losses[-1][1] if losses else None)

    def add(self, events: Sequence[Event], start: int, end: int) -> None:
        """Add events, which lie between these bytes of the event log."""
        before, numbers = self.last_step, set[int]()
        stages: defaultdict[Stage, list[tuple[int, str | None]]] = defaultdict(list)
        for event in events:
            stages[event.stage].append((event.step, event.digest))
        for stage, pairs in stages.items():
            numbers |= self._add(stage, pairs, start, end)
        number = min(numbers, default=0)
        self._alone = number if len(numbers) == 1 and before < blocks.start(number) else None
        losses = [(event.step, event.value) for event in events if event.value is not None]
        self._lose(losses, as_number(float.fromhex(losses[-1][1])) if losses else None)

    def _add(self, stage: Stage, pairs: Pairs, start: int, end: int) -> set[int]:
        so_far = self.stages[stage]
        self.ordered = self.ordered and _ascend(so_far.last, pairs)
        numbers = set()
        for number, part in blocks.split(pairs) if self.ordered else ():
            so_far.add(number, part)
            self.places[number] = min(start, self.places.get(number, (start, end))[0]), end
            numbers.add(number)
        return numbers

    @property
    def alone(self) -> Block | None:
        """The block of the events that were added last, if all of it was added with them."""
        number = self._alone
        if number is None or not self.ordered:
            return None
        stages = {stage: one.copy(number) for stage, one in self.stages.items() if number in one.digests}
        last = self.last_loss if self.last_loss and block_of(self.last_loss[0]) == number else None
        return Block(self._origin.framework, self._origin.lane, number, stages, last)

    def take(self, block: Block, start: int, end: int) -> bool:
        """Add a block, whose events lie between these bytes of the event log; return whether it can be added."""
        if not self.ordered or self.last_step >= blocks.start(block.number):
            return False
        for stage, one in block.stages.items():
            self.stages[stage].take(block.number, one)
        self.places[block.number] = start, end
        self.last_loss, self._alone = block.last_loss or self.last_loss, None
        return True

    def _lose(self, losses: Sequence[tuple[int, object]], last: Number) -> None:
        self.ordered = self.ordered and _ascend(self.last_loss[0] if self.last_loss else -1, losses)
        self.last_loss = (losses[-1][0], last) if losses else self.last_loss

    @property
    def last_step(self) -> int:
        """The last step of any stage, -1 if there is none."""
        return max((stage.last for stage in self.stages.values()), default=-1)


def _ascend(last: int, pairs: Sequence[tuple[int, object]]) -> bool:
    """Whether no step is before the one in front of it; the first comes after ``last``."""
    return not pairs or (last <= pairs[0][0] and sorted(pairs, key=_STEP_OF) == pairs)


# Trees of digests in a file, of which a node is read when it is asked for.
#
# A node is an ENTRY for each of its digests. It must have the digest that the node above has for it.


ENTRY = struct.Struct(">Q32sQQ")
"""A number, its digest, and where what it stands for begins and ends: a node in this file, a block in the event log."""

_Natural = Annotated[int, Meta(ge=0)]


class Entry(NamedTuple):
    """A digest in a node, and the bytes between which is what it stands for."""

    digest: bytes
    start: int
    end: int


class Top(msgspec.Struct, frozen=True):
    """The height and the root of a tree, and the bytes after the head between which its top is."""

    height: Annotated[int, Meta(ge=0, le=16)]
    root: bytes
    start: _Natural
    end: _Natural


class FoldedTree(Tree):
    """A tree in a file, of which the latest node of each level is held. ``base`` is where nodes begin."""

    def __init__(self, path: Path, base: int, top: Top) -> None:
        self.height, self.root = top.height, top.root
        self._path, self._base = path, base
        self._top = Entry(top.root, top.start, top.end)
        self._latest: dict[int, tuple[int, Mapping[int, Entry]]] = {}

    def node(self, level: int, number: int) -> Node:
        """See Tree. Raises StorageError if the file is not the same any more."""
        return {below: entry.digest for below, entry in self.entries(level, number).items()}

    def entries(self, level: int, number: int) -> Mapping[int, Entry]:
        """Return a node with places, empty if there is none. Raises StorageError as node does."""
        if level > self.height or (level == self.height and number):
            return {}
        at, entries = self._latest.get(level, (-1, {}))
        if at != number:
            top = self._top if level == self.height else self.entries(level + 1, number // FAN_OUT).get(number)
            entries = self._read(top) if top is not None else {}
            self._latest[level] = number, entries
        return entries

    def _read(self, node: Entry) -> Mapping[int, Entry]:
        data = b""
        with contextlib.suppress(OSError, OverflowError), self._path.open("rb", buffering=0) as file:
            file.seek(self._base + node.start)
            data = file.read(max(0, min(node.end - node.start, FAN_OUT * ENTRY.size)))
        entries = ENTRY.iter_unpack(data[: len(data) // ENTRY.size * ENTRY.size])
        children = {number: Entry(*rest) for number, *rest in entries}
        if digest({number: entry.digest for number, entry in children.items()}) != node.digest:
            hint = "Leave the results folder as it is while it is compared."
            raise StorageError(f"{self._path} is gone, or has changed since it was read", hint)
        return children


@dataclass(frozen=True)
class FoldedStage:
    """The digests of one stage in a file; see OfStage."""

    tree: FoldedTree

    @property
    def digests(self) -> Mapping[int, bytes]:
        """See OfStage."""
        return Digests(self.tree)


@dataclass(frozen=True)
class Places(Mapping[int, tuple[int, int]]):
    """Where each block of a training is in its event log: each tree with a digest of it has that."""

    trees: tuple[FoldedTree, ...]

    def __getitem__(self, number: int) -> tuple[int, int]:
        for tree in self.trees:
            entry = tree.entries(1, number // FAN_OUT).get(number)
            if entry is not None:
                return entry.start, entry.end
        raise KeyError(number)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted({number for tree in self.trees for number in Digests(tree)}))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def write(
    tree: Tree, level: int, number: int, places: Mapping[int, tuple[int, int]], nodes: bytearray
) -> tuple[int, int]:
    """Add a node after those below it, and return where it begins and ends."""
    entries = [
        ENTRY.pack(below, one, *(places[below] if level == 1 else write(tree, level - 1, below, places, nodes)))
        for below, one in (tree.node(level, number) if level else {}).items()
    ]
    nodes += b"".join(entries)
    return len(nodes) - len(entries) * ENTRY.size, len(nodes)
