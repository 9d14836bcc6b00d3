"""Trees of digests in a file, of which a node is read when it is asked for.

A node is an ENTRY for each of its digests. It must have the digest that the node above has for it.
"""

import contextlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from detaudit.errors import StorageError
from detaudit.model.tree import FAN_OUT, Digests, Node, Tree, digest

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
        at, found = self._latest.get(level, (-1, {}))
        if at != number:
            whole = self._top if level == self.height else self.entries(level + 1, number // FAN_OUT).get(number)
            found = self._read(whole) if whole is not None else {}
            self._latest[level] = number, found
        return found

    def _read(self, whole: Entry) -> Mapping[int, Entry]:
        data = b""
        with contextlib.suppress(OSError, OverflowError), self._path.open("rb", buffering=0) as file:
            file.seek(self._base + whole.start)
            data = file.read(max(0, min(whole.end - whole.start, FAN_OUT * ENTRY.size)))
        entries = ENTRY.iter_unpack(data[: len(data) // ENTRY.size * ENTRY.size])
        found = {number: Entry(*rest) for number, *rest in entries}
        if digest({number: entry.digest for number, entry in found.items()}) != whole.digest:
            hint = "Leave the results folder as it is while it is compared."
            raise StorageError(f"{self._path} is gone, or has changed since it was read", hint)
        return found


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
