"""A tree of digests: equal roots stand for equal digests, and a few of its nodes show where two trees differ.

Digests have numbers, and a node has those of FAN_OUT numbers that follow one another: node N of level 1 those from
N * FAN_OUT on. Likewise, a node of each level above has the digests of nodes below it. Numbers alone say where a digest
is, so two trees of any size have the same nodes where their digests are the same.
"""

import hashlib
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

FAN_OUT = 16
"""The number of digests of a node, fewer if there are gaps between their numbers."""

Node: TypeAlias = Mapping[int, bytes]
"""Digests by ascending number."""


def digest(node: Node) -> bytes:
    """Return the digest of a node: 32 bytes."""
    found = hashlib.sha256(usedforsecurity=False)
    for number, one in node.items():
        found.update(b"%d %s\n" % (number, one.hex().encode()))
    return found.digest()


class Tree(ABC):
    """A tree of digests, wherever its nodes are.

    ``height`` is the level of its top, whose number is 0, and the lowest level that has all digests below one node; of
    an empty tree it is 0. ``root`` is the digest of the top: of two trees, equal if and only if all digests are.
    """

    height: int
    root: bytes

    @abstractmethod
    def node(self, level: int, number: int) -> Node:
        """Return a node, empty if there is none. ``level`` is from 1 to the height."""


class HeldTree(Tree):
    """A tree in memory."""

    def __init__(self, digests: Node) -> None:
        self._levels: list[Mapping[int, Node]] = []
        top: Node = dict(sorted(digests.items()))
        while top:
            nodes: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
            for number, one in top.items():
                nodes[number // FAN_OUT][number] = one
            self._levels.append(nodes)
            top = {} if nodes.keys() == {0} else {number: digest(node) for number, node in nodes.items()}
        self.height = len(self._levels)
        self.root = digest(self.node(self.height, 0) if self.height else {})

    def node(self, level: int, number: int) -> Node:
        """See Tree."""
        return self._levels[level - 1].get(number, {})


class Digests(Mapping[int, bytes]):
    """The digests of a tree by ascending number; only nodes above the one that is asked for are looked at."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def __getitem__(self, number: int) -> bytes:
        if not self._tree.height:
            raise KeyError(number)
        return self._tree.node(1, number // FAN_OUT)[number]

    def __iter__(self) -> Iterator[int]:
        return self._from(self._tree.height, 0) if self._tree.height else iter(())

    def _from(self, level: int, number: int) -> Iterator[int]:
        for below in self._tree.node(level, number):
            yield from (below,) if level == 1 else self._from(level - 1, below)

    def __bool__(self) -> bool:
        return self._tree.height > 0

    def __len__(self) -> int:
        return sum(1 for _ in self)


def differing(a: Tree, b: Tree, *, shared: bool = False) -> Iterator[int]:
    """Yield the numbers whose digests differ, ascending; if ``shared``, of those that both trees have.

    The first one takes at most two nodes of each level from each tree, and nothing if the roots are equal.
    """
    if a.root != b.root:
        yield from _differing(a, b, max(a.height, b.height), 0, shared)


def _differing(a: Tree, b: Tree, level: int, number: int, shared: bool) -> Iterator[int]:
    ours, theirs = _node(a, level, number), _node(b, level, number)
    for below in sorted(ours.keys() & theirs.keys() if shared else ours.keys() | theirs.keys()):
        if ours.get(below) != theirs.get(below):
            yield from (below,) if level == 1 else _differing(a, b, level - 1, below, shared)


def _node(tree: Tree, level: int, number: int) -> Node:
    """Return a node of a tree, also above its top, where there is nothing beside the top."""
    if level <= tree.height:
        return tree.node(level, number)
    above = tree.root if level == tree.height + 1 else b""
    return {0: above} if number == 0 and tree.height else {}
