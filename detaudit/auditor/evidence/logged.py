"""What a long training recorded: digests of its blocks, and where they are in its event log, as that is read."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from detaudit.auditor.evidence.event_records import Event
from detaudit.auditor.evidence.log_blocks import Held, LoggedBlocks, Origin
from detaudit.model import Number, Stage, as_number, blocks
from detaudit.model.blocks import Pairs, block_of
from detaudit.model.tree import HeldTree, Tree

_STEP = itemgetter(0)


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

    def add(self, number: int, found: Pairs) -> None:
        """Add ascending pairs of one block, none of which is before the last step."""
        if number not in self.digests:
            self._hash = blocks.hashed()
        self._hash.update(blocks.text(found))
        self.digests[number] = self._hash.digest()
        self.last = found[-1][0]

    def copy(self, number: int) -> "StageBlocks":
        """Return this stage with its last block alone."""
        found = StageBlocks()
        found.digests, found.last, found._hash = {number: self.digests[number]}, self.last, self._hash.copy()
        return found

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

    def take_held(self, held: Held, start: int, end: int) -> None:
        """Take over what was held, which lies between these bytes of the event log."""
        for stage, steps in held.digests.items():
            self._add(stage, blocks.pairs(steps), start, end)
        losses = list(held.losses.items())
        self._lose(losses, losses[-1][1] if losses else None)

    def add(self, events: Sequence[Event], start: int, end: int) -> None:
        """Add events, which lie between these bytes of the event log."""
        before, numbers = self.last_step, set[int]()
        stages: defaultdict[Stage, list[tuple[int, str | None]]] = defaultdict(list)
        for event in events:
            stages[event.stage].append((event.step, event.digest))
        for stage, found in stages.items():
            numbers |= self._add(stage, found, start, end)
        number = min(numbers, default=0)
        self._alone = number if len(numbers) == 1 and before < blocks.start(number) else None
        losses = [(event.step, event.value) for event in events if event.value is not None]
        self._lose(losses, as_number(float.fromhex(losses[-1][1])) if losses else None)

    def _add(self, stage: Stage, found: Pairs, start: int, end: int) -> set[int]:
        so_far = self.stages[stage]
        self.ordered = self.ordered and _ascend(so_far.last, found)
        numbers = set()
        for number, part in blocks.split(found) if self.ordered else ():
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


def _ascend(last: int, found: Sequence[tuple[int, object]]) -> bool:
    """Whether no step is before the one in front of it; the first comes after ``last``."""
    return not found or (last <= found[0][0] and sorted(found, key=_STEP) == found)
