"""One stage of a training as an array: what differs is found by comparing the arrays of blocks whose digests differ."""

import hashlib
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.int64]
"""A step and 16 bytes in each row: the digest, together with a hash of the name if it has one."""

Ints: TypeAlias = NDArray[np.int64]

Steps: TypeAlias = Mapping[int, tuple[str, ...]]
"""The digests of one stage by step, as text: 32 hexadecimal digits, and a space and a name if there is one."""

BLOCK = 4096
"""The number of steps of a block; step S is in the block with the number S // BLOCK."""

NOTHING: Rows = np.empty((0, 3), np.int64)

_HEX = re.compile(r"([0-9a-f]{32})(?: (.*))?", re.DOTALL)
_MOST = 2**63 - 1


def hashed(data: bytes = b"") -> "hashlib.blake2b":
    """Return the hash of rows so far, by which blocks are compared."""
    return hashlib.blake2b(data, digest_size=16, usedforsecurity=False)


def of_name(name: str) -> bytes:
    """Return what a name adds to a digest."""
    return hashed(name.encode("utf-8", "surrogatepass")).digest()


def _of_text(text: str | None) -> bytes:
    match = _HEX.fullmatch(text or "")
    if match is None:  # of a baseline: one of a file, which is longer, or none at all
        return of_name(f"\0{text}")
    digest, name = bytes.fromhex(match[1]), match[2]
    return digest if name is None else bytes(a ^ b for a, b in zip(digest, of_name(name), strict=True))


def block_of(step: int) -> int:
    """Return the number of the block of a step; that of a negative one, as in an edited baseline, is 0."""
    return max(step, 0) // BLOCK


class Series(Steps):
    """The digests of one stage by step, of which a block is read at a time. Steps ascend."""

    @property
    @abstractmethod
    def blocks(self) -> Mapping[int, bytes]:
        """One digest for each block, by its ascending number."""

    @abstractmethod
    def rows(self, block: int) -> Rows:
        """Return the rows of a block, none if there is no such block. Those of one step are as they were recorded."""

    @abstractmethod
    def texts(self, block: int) -> Steps:
        """Return the same as text."""

    def __getitem__(self, step: int) -> tuple[str, ...]:
        return self.texts(block_of(step))[step]

    def __contains__(self, step: object) -> bool:
        return isinstance(step, int) and bool((self.rows(block_of(step))[:, 0] == step).any())

    def __iter__(self) -> Iterator[int]:
        for block in self.blocks:
            yield from np.unique(self.rows(block)[:, 0]).tolist()

    def __reversed__(self) -> Iterator[int]:
        for block in reversed([*self.blocks]):
            yield from reversed(np.unique(self.rows(block)[:, 0]).tolist())

    def __bool__(self) -> bool:
        return bool(self.blocks)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self.blocks) == dict(series(other).blocks)

    __hash__ = None  # type: ignore[assignment]  # as of every mapping

    def through(self, last: int) -> "Series":
        """Return what was recorded through this step. Of what is left in a log, nothing is read for that."""
        return _Cut(self, last)


class HeldSeries(Series):
    """Digests that are held as text."""

    def __init__(self, steps: Steps) -> None:
        self._texts: dict[int, dict[int, tuple[str, ...]]] = {}
        for step in sorted(steps):
            self._texts.setdefault(block_of(step), {})[step] = steps[step]

    @cached_property
    def _rows(self) -> dict[int, Rows]:
        return {block: _as_rows(steps) for block, steps in self._texts.items()}

    @cached_property
    def blocks(self) -> Mapping[int, bytes]:
        """See Series."""
        return {block: hashed(rows.tobytes()).digest() for block, rows in self._rows.items()}

    def rows(self, block: int) -> Rows:
        """See Series."""
        return self._rows.get(block, NOTHING)

    def texts(self, block: int) -> Steps:
        """See Series."""
        return self._texts.get(block, {})


def _as_rows(steps: Steps) -> Rows:
    pairs = [(step, text) for step, texts in steps.items() for text in texts or (None,)]
    rows = np.empty((len(pairs), 3), np.int64)
    rows[:, 0] = [max(-_MOST, min(step, _MOST)) for step, _ in pairs]
    rows[:, 1:] = np.frombuffer(b"".join(_of_text(text) for _, text in pairs), np.int64).reshape(-1, 2)
    return rows


class _Cut(Series):
    def __init__(self, series: Series, last: int) -> None:
        self._whole, self._last = series, last

    @cached_property
    def blocks(self) -> Mapping[int, bytes]:
        """See Series."""
        end = block_of(self._last)
        blocks = {block: digest for block, digest in self._whole.blocks.items() if block < end}
        rows = self.rows(end)
        return {**blocks, end: hashed(rows.tobytes()).digest()} if len(rows) else blocks

    def rows(self, block: int) -> Rows:
        """See Series."""
        rows = self._whole.rows(block) if block <= block_of(self._last) else NOTHING
        return rows[rows[:, 0] <= self._last]

    def __getitem__(self, step: int) -> tuple[str, ...]:
        if step > self._last:
            raise KeyError(step)
        return self._whole[step]

    def texts(self, block: int) -> Steps:
        """See Series."""
        steps = self._whole.texts(block) if block <= block_of(self._last) else {}
        return {step: texts for step, texts in steps.items() if step <= self._last}


def series(steps: Steps) -> Series:
    """Return digests by step as a series, whether or not they are held in memory."""
    return steps if isinstance(steps, Series) else HeldSeries(steps)


def fingerprint(steps: Steps) -> str:
    """Return a text that is equal for two mappings if and only if they are equal."""
    return hashed(repr(list(series(steps).blocks.items())).encode()).hexdigest()


def differing(a: Series, b: Series, *, shared: bool = False) -> Iterator[int]:
    """Yield the numbers of the blocks that differ, ascending; if ``shared``, of those that both have."""
    ours, theirs = a.blocks, b.blocks
    for block in sorted(ours.keys() & theirs.keys() if shared else ours.keys() | theirs.keys()):
        if ours.get(block) != theirs.get(block):
            yield block


def first_step(a: Series, b: Series, *, through: int | None = None, shared: bool = False) -> int | None:
    """Return the first step at which two series differ, up to ``through``, None if there is none.

    If they are ``shared``, steps that only one of them has do not count.
    """
    for block in differing(a, b, shared=shared):
        if through is not None and block > block_of(through):
            return None
        step = _first_step(a.rows(block), b.rows(block), shared)
        if step is not None:
            return step if through is None or step <= through else None
    return None


def _first_step(a: Rows, b: Rows, shared: bool) -> int | None:
    if shared:
        a, b = a[np.isin(a[:, 0], b[:, 0])], b[np.isin(b[:, 0], a[:, 0])]
    both = min(len(a), len(b))
    unequal = (a[:both] != b[:both]).any(axis=1)
    first = int(unequal.argmax()) if unequal.any() else both
    return min((int(rows[first, 0]) for rows in (a, b) if first < len(rows)), default=None)


def shared_steps(a: Rows, b: Rows) -> Ints:
    """Return the ascending steps that two blocks both have."""
    return np.intersect1d(a[:, 0], b[:, 0])


def union(steps: Sequence[Ints]) -> Ints:
    """Return all of these steps, each once; they ascend."""
    others = [one for one in steps[1:] if not np.array_equal(one, steps[0])]
    return np.unique(np.concatenate([steps[0], *others])) if others else steps[0]


def last_equal(a: Series, b: Series, last: int) -> int | None:
    """Return the last step up to ``last`` that two series share, and at which they are equal; None if there is none."""
    for block in sorted(a.blocks.keys() & b.blocks.keys(), reverse=True):
        if block <= block_of(last):
            ours, theirs = a.rows(block), b.rows(block)
            steps = shared_steps(ours, theirs)
            for step in reversed(steps[steps <= last].tolist()):
                if np.array_equal(ours[ours[:, 0] == step], theirs[theirs[:, 0] == step]):
                    return int(step)
    return None


def most_different(sides: Sequence[Rows]) -> tuple[int, bool]:
    """Return how many different digests the sides of a block have at a step at most, and whether all have all steps."""
    by_step = [_by_step(rows) for rows in sides]
    steps = union([steps for steps, _ in by_step])
    known = np.zeros((len(sides), len(steps)), bool)
    digests = np.zeros((len(sides), len(steps), 2), np.int64)
    counts = np.zeros(len(steps), np.int64)
    for side, (own_steps, own_digests) in enumerate(by_step):
        at = np.searchsorted(steps, own_steps)
        known[side, at], digests[side, at] = True, own_digests
        seen = (known[:side] & (digests[:side] == digests[side]).all(axis=2)).any(axis=0)
        counts += known[side] & ~seen
    return int(counts.max(initial=0)), bool(known.all())


def _by_step(rows: Rows) -> tuple[Ints, Rows]:
    """Return the steps of a block, and one digest for each, of all its digests if there are several."""
    steps, first, counts = np.unique(rows[:, 0], return_index=True, return_counts=True)
    digests = rows[first, 1:]
    for index in np.flatnonzero(counts > 1):
        several = rows[first[index] : first[index] + counts[index], 1:]
        digests[index] = np.frombuffer(hashed(several.tobytes()).digest(), np.int64)
    return steps, digests
