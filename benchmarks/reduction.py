"""The arithmetic of docs/lab/scale.md: how large records of many ranks are, and what their reduction leaves of them."""

import random
import time
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.comparison import STAGES
from benchmarks.rows import Result
from detaudit.model import blocks
from detaudit.model.blocks import FAN_OUT, HeldTree
from detaudit.remote.archive import MOST_BYTES
from detaudit.remote.join import POLL_S
from detaudit.runs.log import MOST_KNOWN
from detaudit.runs.log_pages import ENTRY

RUNS, RANKS, STEPS = 1_000, 1_024, 1_000_000
ALL = RUNS * RANKS
PER_MACHINE = 8
NETWORK = 1.25e9
"""Bytes per second into the machine that joins."""
MEMORY, DISK = 24 * 2**30, 10**12
LISTED, REQUEST_S = 1_000, 0.05
HEAD = 30_000
DIGEST = 32
DIFFERENT = 3
DAY = 86_400

Rows = Iterator[Sequence[str]]


@dataclass(frozen=True)
class Measured:
    """What benchmarks/folding.py found: bytes of a rank, and rates of one core."""

    ranks: int
    log: float
    packed: float
    trees: float
    head: float
    held: float
    events_per_s: float
    heads_per_s: float
    nodes: int
    read: float
    slower: float

    @classmethod
    def of(cls, result: Result) -> "Measured":
        """Take it from a result."""
        found: Mapping[str, float] = {figure.unit: figure.value for row in result.rows for figure in row.also}
        return cls(
            ranks=int(found["ranks"]),
            log=found["bytes of log per step"] * STEPS,
            packed=found["bytes of compressed log per step"] * STEPS,
            trees=found["bytes of trees per step"] * STEPS,
            head=found["bytes of each head"],
            held=found["bytes held of a rank without trees"],
            events_per_s=found["events per second"],
            heads_per_s=2 * found["ranks"] / found["s"],
            nodes=int(found["nodes read"]),
            read=found["bytes of nodes and blocks"],
            slower=1 / result.rows[1].median,
        )

    @property
    def fold_s(self) -> float:
        """The time of folding the event log of a rank."""
        return STEPS * len(STAGES) / self.events_per_s


def size(count: float) -> str:
    """Return a number of bytes with three digits."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB" if count < 1000 else f"{count:,.0f} TB"


def duration(seconds: float) -> str:
    """Return a time in the unit that people would use."""
    for limit, unit, length in ((60, "s", 1), (3600, "min", 60), (DAY, "h", 3600)):
        if seconds < limit:
            return f"{seconds / length:.2g} {unit}"
    return f"{seconds / DAY:,.3g} days" if seconds < 1000 * DAY else f"{seconds / DAY:,.0f} days"


def sizes(found: Measured) -> Rows:
    """Yield what there is of the steps, from all of it to one digest of a run."""
    rows = (
        ("event logs", "step", found.log),
        ("the same, compressed", "step", found.packed),
        ("a digest of each step and stage", "step", DIGEST * len(STAGES) * STEPS),
        ("trees", f"block of {blocks.BLOCK:,} steps", found.trees),
        ("heads", "rank", HEAD),
        ("a digest of each rank", "rank", DIGEST),
        ("a digest of each machine", f"{PER_MACHINE} ranks", DIGEST / PER_MACHINE),
        ("a digest of each run", "run", DIGEST / RANKS),
    )
    for what, each, count in rows:
        rank = size(count) if count >= DIGEST else ""
        yield what, each, rank, size(count * RANKS), size(count * ALL), duration(count * ALL / NETWORK)


def height(steps: float, leaf: int = blocks.BLOCK) -> int:
    """Return the height of a tree over steps 1 to this one, whose leaves are of ``leaf`` steps."""
    found, covered = 1, FAN_OUT * leaf
    while covered <= steps:
        found, covered = found + 1, covered * FAN_OUT
    return found


def reads(found: Measured) -> Rows:
    """Yield what a first difference takes of one run and stage, by the number of steps."""
    for steps in (10**4, 10**5, 10**6, 10**7, 10**9):
        levels, each = height(steps), found.log / STEPS
        block = min(steps, blocks.BLOCK) * each
        yield f"{steps:,}", f"{levels}", size(levels * FAN_OUT * ENTRY.size), size(block), size(steps * each)


def leaves(found: Measured) -> Rows:
    """Yield what leaves of other sizes would cost, with the nodes above them."""
    for leaf in (1, 64, blocks.BLOCK, blocks.BLOCK * FAN_OUT):
        each = len(STAGES) * ENTRY.size / leaf * FAN_OUT / (FAN_OUT - 1)
        yield f"{leaf:,}", f"{height(STEPS, leaf)}", size(each * STEPS * ALL), size(leaf * found.log / STEPS)


def levels() -> Rows:
    """Yield who reduces which digests."""
    events = STEPS * len(STAGES) * ALL
    yield "step", "", f"{events:.2g}", "at which step a rank differs"
    yield "block", "rank", f"{events / blocks.BLOCK:.2g}", "in which block that is"
    yield "rank", "rank", f"{ALL:,}", "which ranks differ, and in which stages"
    yield "machine", "nobody", f"{ALL // PER_MACHINE:,}", "nothing more than ranks do"
    yield "run", "whoever has all ranks", f"{RUNS:,}", "which runs match"


def joins(found: Measured) -> Rows:
    """Yield what join moves, unpacks, computes and holds, depending on what it reads of each run.

    It holds the digests of two runs, and the settings of each process of one run if those of all runs are equal.
    """
    decoding, heads = ALL * found.fold_s, ALL / found.heads_per_s
    rows = (
        ("event logs", found.packed, found.log, decoding, 2 * found.held + HEAD),
        ("trees with their heads", found.trees + HEAD, found.trees + HEAD, heads, HEAD),
        ("heads alone", HEAD, HEAD, heads, HEAD),
        ("a digest of each rank", DIGEST, 0, 0, 2 * DIGEST),
        ("a digest of each run", DIGEST / RANKS, 0, 0, 2 * DIGEST / RANKS),
    )
    for what, moved, unpacked, core_s, held in rows:
        each = (size(moved * ALL), duration(moved * ALL / NETWORK), size(unpacked * ALL) if unpacked else "")
        yield what, *each, duration(core_s) if core_s else "seconds", size(RANKS * held)


def limits(found: Measured) -> Rows:
    """Yield the number of ranks at which each limit is reached if join reads event logs, the lowest first."""
    rows = (
        (MOST_KNOWN * blocks.BLOCK / STEPS, f"{MOST_KNOWN:,} blocks are recognized", "each run is decoded in full"),
        (DAY / RUNS / found.fold_s, "one core decodes for a day", "join takes days"),
        (POLL_S / REQUEST_S * LISTED / RUNS, "an object for each rank", "to list them takes longer than the wait"),
        (MOST_BYTES / found.log, f"an archive unpacks to {MOST_BYTES // 2**30} GiB", "join refuses it"),
        (DAY * NETWORK / RUNS / found.packed, "the network is busy for a day", "join takes days"),
        (DISK / RUNS / found.log, "the disk holds all runs, unpacked", "join cannot unpack them"),
        (MEMORY / RUNS / HEAD, "memory holds settings that differ in all processes of all runs", "join is killed"),
        (MEMORY / 2 / found.held, "memory holds the digests of all blocks of two runs", "join is killed"),
    )
    for ranks, what, then in sorted(rows):
        yield f"{ranks:,.0f}", what, then


@dataclass(frozen=True)
class Simulated:
    """What it takes to compare all runs by the digests of their ranks: CPU seconds, nodes, and bytes in memory."""

    seconds: float
    nodes: int
    held: float


def simulated() -> Simulated:
    """Fold the digests of all ranks, and find the ranks that were made to differ. Raises AssertionError if it fails."""
    chance = random.Random(0)
    reference = [chance.randbytes(DIGEST) for _ in range(RANKS)]
    planted = {run: chance.randrange(RANKS) for run in chance.sample(range(1, RUNS), DIFFERENT)}
    tracemalloc.start()
    runs = [{rank: bytes(bytearray(one)) for rank, one in enumerate(reference)} for _ in range(RUNS)]
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    for run, rank in planted.items():
        runs[run][rank] = chance.randbytes(DIGEST)
    started, nodes, found = time.process_time(), 0, {}
    first = HeldTree(runs[0])
    for run, digests in enumerate(runs):
        other = HeldTree(digests)
        for rank in blocks.differing_leaves(first, other):
            found[run] = rank
            nodes += 2 * other.height
    assert found == planted
    return Simulated(time.process_time() - started, nodes, held)
