"""The memory of a run as its operations arrive: the last writer of each storage, and the contents seen."""

from collections import OrderedDict
from dataclasses import dataclass, field

from detaudit.auditor.trace.op_records import OpLine

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
        for _, storage, whole in op.outs:
            if storage < 0:
                continue
            if op.uninitialized and storage not in used:
                self.uninitialized[storage] = op
            elif whole or storage not in used:
                self.uninitialized.pop(storage, None)
            self.writers[storage] = op
            self.writers.move_to_end(storage)
        for digest in [digest for digest, _ in op.ins] + [digest for digest, _, _ in op.outs]:
            self.seen[digest] = None
        for kept in (self.writers, self.uninitialized, self.seen):
            while len(kept) > MOST_KEPT:
                kept.popitem(last=False)
        return Entry(op, inputs)
