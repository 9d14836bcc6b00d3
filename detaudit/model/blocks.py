"""Digests by step, in blocks of steps.

One digest stands for all steps of a block: two blocks are equal if and only if their digests are, so only blocks that
differ have to be read. A tree of these digests says which do.
"""

import hashlib
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import TypeAlias

import msgspec

from detaudit.model import tree
from detaudit.model.tree import HeldTree, Tree

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


def split(found: Pairs) -> Iterator[tuple[int, Pairs]]:
    """Yield ascending pairs by block: its number, and its part of them."""
    if block_of(found[0][0]) == block_of(found[-1][0]):
        yield block_of(found[0][0]), found
        return
    for number, part in groupby(found, lambda pair: block_of(pair[0])):
        yield number, list(part)


def pairs(steps: Steps) -> Pairs:
    """Return digests by ascending step as pairs."""
    return [(step, digest) for step, digests in steps.items() for digest in digests or (None,)]


def text(found: Pairs) -> bytes:
    """Return pairs as text; the digest of a block is that of the text of its pairs."""
    try:
        return _ENCODER.encode_lines(found)
    except UnicodeEncodeError:  # the name of a file that is not UTF-8; no event log has such a text
        return repr(found).encode()


def hashed(data: bytes = b"") -> "hashlib._Hash":
    """Return the hash of a text so far, by which blocks are compared."""
    return hashlib.sha256(data, usedforsecurity=False)


def fingerprint(steps: Steps) -> str:
    """Return a text that is equal for two mappings if and only if they are equal: the root of the tree."""
    return in_blocks(steps).tree.root.hex()


def differing(a: BlockedSteps, b: BlockedSteps, *, shared: bool = False) -> Iterator[int]:
    """Yield the numbers of the blocks that differ, ascending; if ``shared``, of those that both have."""
    return tree.differing(a.tree, b.tree, shared=shared)


def last(steps: Steps) -> int:
    """Return the last step, 0 if there is none."""
    return next(reversed(in_blocks(steps)), 0)


def steps(stages: Iterable[Steps]) -> Iterator[int]:
    """Yield all steps at which any of these stages has a digest, ascending."""
    found = [in_blocks(one) for one in stages]
    for number in sorted({number for one in found for number in one.digests}):
        yield from sorted({step for one in found for step in one.block(number)})
