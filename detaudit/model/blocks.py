"""Steps in blocks of digests, and trees of them: what differs is found without reading all."""

import hashlib
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Reversible, Sequence
from functools import cached_property
from itertools import groupby
from typing import TypeAlias, cast

import msgspec

from detaudit.model.fact import Number

# A tree of digests: equal roots stand for equal digests, and a few of its nodes show where two trees differ.
#
# Digests have numbers, and a node has those of FAN_OUT numbers that follow one another: node N of level 1 those from N
# * FAN_OUT on. Likewise, a node of each level above has the digests of nodes below it. Numbers alone say where a digest
# is, so two trees of any size have the same nodes where their digests are the same.


FAN_OUT = 16
"""The number of digests of a node, fewer if there are gaps between their numbers."""

Node: TypeAlias = Mapping[int, bytes]
"""Digests by ascending number."""


def digest(node: Node) -> bytes:
    """Return the digest of a node: 32 bytes."""
    hasher = hashlib.sha256(usedforsecurity=False)
    for number, one in node.items():
        hasher.update(b"%d %s\n" % (number, one.hex().encode()))
    return hasher.digest()


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


def differing_leaves(a: Tree, b: Tree, *, shared: bool = False) -> Iterator[int]:
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


# Digests by step, in blocks of steps.
#
# One digest stands for all steps of a block: two blocks are equal if and only if their digests are, so only blocks that
# differ have to be read. A tree of these digests says which do.


BLOCK = 2048
"""The number of steps of a block; step S is in the block with the number S // BLOCK."""

Steps: TypeAlias = Mapping[int, tuple[str, ...]]
"""The digests of one stage by step."""

Pairs: TypeAlias = Sequence[tuple[int, str | None]]
"""The same as step and digest, one after another; None stands for a step without a digest."""

_ENCODER = msgspec.json.Encoder()


class BlockedSteps(Steps):
    """Digests by step, of which a block is read at a time. Steps ascend."""

    @property
    @abstractmethod
    def digests(self) -> Mapping[int, bytes]:
        """One digest for each block, by its number."""

    @property
    def tree(self) -> Tree:
        """The tree of these digests."""
        return HeldTree(self.digests)

    @abstractmethod
    def block(self, number: int) -> Steps:
        """Return the steps of a block, none if there is no such block."""

    def __getitem__(self, step: int) -> tuple[str, ...]:
        return self.block(block_of(step))[step]

    def __iter__(self) -> Iterator[int]:
        for number in sorted(self.digests):
            yield from sorted(self.block(number))

    def __reversed__(self) -> Iterator[int]:
        for number in sorted(self.digests, reverse=True):
            yield from sorted(self.block(number), reverse=True)

    def __bool__(self) -> bool:
        return bool(self.digests)

    def __len__(self) -> int:
        return sum(len(self.block(number)) for number in self.digests)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self.tree.root == in_blocks(other).tree.root

    __hash__ = None  # type: ignore[assignment]  # as of every mapping


class HeldSteps(BlockedSteps):
    """Digests that are held in memory."""

    def __init__(self, steps: Steps) -> None:
        self._blocks: defaultdict[int, dict[int, tuple[str, ...]]] = defaultdict(dict)
        for step in sorted(steps):
            self._blocks[block_of(step)][step] = steps[step]

    @cached_property
    def digests(self) -> Mapping[int, bytes]:
        """See BlockedSteps."""
        return {number: hashed(text(pairs(steps))).digest() for number, steps in self._blocks.items()}

    def block(self, number: int) -> Steps:
        """See BlockedSteps."""
        return self._blocks.get(number, {})


def block_of(step: int) -> int:
    """Return the number of the block of a step; that of a negative one, as in an edited baseline, is 0."""
    return max(step, 0) // BLOCK


def start(number: int) -> int:
    """Return the first step of a block."""
    return number * BLOCK


def in_blocks(steps: Steps) -> BlockedSteps:
    """Return digests by step in blocks, whether or not they are held in memory."""
    return steps if isinstance(steps, BlockedSteps) else HeldSteps(steps)


def split(entries: Pairs) -> Iterator[tuple[int, Pairs]]:
    """Yield ascending pairs by block: its number, and its part of them."""
    if block_of(entries[0][0]) == block_of(entries[-1][0]):
        yield block_of(entries[0][0]), entries
        return
    for number, part in groupby(entries, lambda pair: block_of(pair[0])):
        yield number, list(part)


def pairs(steps: Steps) -> Pairs:
    """Return digests by ascending step as pairs."""
    return [(step, digest) for step, digests in steps.items() for digest in digests or (None,)]


def text(entries: Pairs) -> bytes:
    """Return pairs as text; the digest of a block is that of the text of its pairs."""
    try:
        return _ENCODER.encode_lines(entries)
    except UnicodeEncodeError:  # the name of a file that is not UTF-8; no event log has such a text
        return repr(entries).encode()


def hashed(data: bytes = b"") -> "hashlib._Hash":
    """Return the hash of a text so far, by which blocks are compared."""
    return hashlib.sha256(data, usedforsecurity=False)


def fingerprint(steps: Steps) -> str:
    """Return a text that is equal for two mappings if and only if they are equal: the root of the tree."""
    return in_blocks(steps).tree.root.hex()


def differing(a: BlockedSteps, b: BlockedSteps, *, shared: bool = False) -> Iterator[int]:
    """Yield the numbers of the blocks that differ, ascending; if ``shared``, of those that both have."""
    return differing_leaves(a.tree, b.tree, shared=shared)


def last(steps: Steps) -> int:
    """Return the last step, 0 if there is none."""
    return next(reversed(in_blocks(steps)), 0)


def steps(stages: Iterable[Steps]) -> Iterator[int]:
    """Yield all steps at which any of these stages has a digest, ascending."""
    blocked = [in_blocks(one) for one in stages]
    for number in sorted({number for one in blocked for number in one.digests}):
        yield from sorted({step for one in blocked for step in one.block(number)})


# What was recorded through a step. Of what is left in an event log, nothing is read for that.


def digests_through(last: int, steps: Steps) -> Steps:
    """Return digests by step through the step ``last``."""
    if isinstance(steps, BlockedSteps):
        return _CutSteps(last, steps)
    return {step: digests for step, digests in steps.items() if step <= last}


def losses_through(last: int, losses: Mapping[int, Number]) -> Mapping[int, Number]:
    """Return losses by step through the step ``last``."""
    if isinstance(losses, dict):
        return {step: loss for step, loss in losses.items() if step <= last}
    return _CutLosses(last, losses)


class _CutSteps(BlockedSteps):
    def __init__(self, last: int, steps: BlockedSteps) -> None:
        self._last, self._steps = last, steps

    @cached_property
    def digests(self) -> Mapping[int, bytes]:
        """See BlockedSteps."""
        number = block_of(self._last)
        before = {one: digest for one, digest in self._steps.digests.items() if one < number}
        return {**before, **HeldSteps(self.block(number)).digests}

    def block(self, number: int) -> Steps:
        """See BlockedSteps."""
        if number > block_of(self._last):
            return {}
        by_step = self._steps.block(number)
        return {step: digests for step, digests in by_step.items() if step <= self._last}


class _CutLosses(Mapping[int, Number]):
    """Losses in the order in which they were recorded, of which those after a step are left out."""

    def __init__(self, last: int, losses: Mapping[int, Number]) -> None:
        self._last, self._losses = last, losses

    def __getitem__(self, step: int) -> Number:
        if step > self._last:
            raise KeyError(step)
        return self._losses[step]

    def __iter__(self) -> Iterator[int]:
        return (step for step in self._losses if step <= self._last)

    def __reversed__(self) -> Iterator[int]:
        return (step for step in reversed(cast("Reversible[int]", self._losses)) if step <= self._last)

    def __len__(self) -> int:
        return sum(1 for _ in self)
