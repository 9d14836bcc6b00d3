"""What a long training recorded: digests of its blocks, and the rest when it is asked for, from its event log."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from detaudit.auditor.evidence.event_pieces import pieces
from detaudit.auditor.evidence.event_records import Event, Line
from detaudit.errors import StorageError
from detaudit.model import Number, Stage, as_number, blocks
from detaudit.model.blocks import BlockedSteps, HeldSteps, Pairs, Steps, block_of

_STEP = itemgetter(0)


class Held:
    """Events of one training that are held in memory."""

    def __init__(self) -> None:
        self.digests: dict[Stage, dict[int, tuple[str, ...]]] = {}
        self.losses: dict[int, Number] = {}

    def add(self, events: Iterable[Event]) -> None:
        """Add events. A step may have several of one stage, such as the weights of two models."""
        for event in events:
            steps = self.digests.setdefault(event.stage, {})
            steps[event.step] = (*steps.get(event.step, ()), event.digest)
            if event.value is not None:
                self.losses[event.step] = as_number(float.fromhex(event.value))


class Origin(NamedTuple):
    """The event log, the framework and the lane of a training."""

    path: Path
    framework: str
    lane: int

    def held(self) -> Held:
        """Return all that this training recorded."""
        found = Held()
        for piece in pieces(self.path):
            found.add(self.among(piece.lines))
        return found

    def among(self, lines: Iterable[Line]) -> Iterator[Event]:
        """Yield the events of this training."""
        for line in lines:
            if isinstance(line, Event) and line.lane == self.lane and line.fw == self.framework:
                yield line


class StageBlocks:
    """The digests of the blocks of one stage, of which the last one still grows."""

    def __init__(self) -> None:
        self.digests: dict[int, bytes] = {}
        self.last = -1
        self._hash = blocks.hashed()

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


class Log:
    """The events of one training in its event log: the digests of its blocks, and where they are.

    ``ordered`` says whether the steps of each stage ascend, as the recorder writes them. Otherwise the blocks are not
    known, and the events must be held.
    """

    def __init__(self, origin: Origin) -> None:
        self.ordered = True
        self.stages: defaultdict[Stage, StageBlocks] = defaultdict(StageBlocks)
        self.places: dict[int, tuple[int, int]] = {}
        self.last_loss: tuple[int, Number] | None = None
        self._alone: int | None = None
        self._origin = origin
        self._latest: tuple[int, Held] = -1, Held()

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

    def block(self, number: int) -> Held:
        """Return the events of a block. Raises StorageError if the event log is not the same any more."""
        if self._latest[0] != number:
            self._latest = number, self._read(number)
        return self._latest[1]

    def _read(self, number: int) -> Held:
        found = Held()
        for piece in pieces(self._origin.path, *self.places.get(number, (0, 0))):
            found.add(event for event in self._origin.among(piece.lines) if block_of(event.step) == number)
        for stage, known in self.stages.items():
            steps = HeldSteps(found.digests.get(stage, {}))
            if steps.digests.get(number) != known.digests.get(number):
                hint = "Leave the results folder as it is while it is compared."
                raise StorageError(f"{self._origin.path} is gone, or has changed since it was read", hint)
        return found


def _ascend(last: int, found: Sequence[tuple[int, object]]) -> bool:
    """Whether no step is before the one in front of it; the first comes after ``last``."""
    return not found or (last <= found[0][0] and sorted(found, key=_STEP) == found)


class LoggedSteps(BlockedSteps):
    """The digests of one stage of a training in an event log."""

    def __init__(self, log: Log, stage: Stage) -> None:
        self._log, self._stage = log, stage

    @property
    def digests(self) -> Mapping[int, bytes]:
        """See BlockedSteps."""
        return self._log.stages[self._stage].digests

    def block(self, number: int) -> Steps:
        """See BlockedSteps. Raises StorageError if the event log is not the same any more."""
        return self._log.block(number).digests.get(self._stage, {}) if number in self.digests else {}


class LoggedLosses(Mapping[int, Number]):
    """The losses of a training in an event log, by ascending step; the last one is always known."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __getitem__(self, step: int) -> Number:
        last = self._log.last_loss
        return last[1] if last and last[0] == step else self._log.block(block_of(step)).losses[step]

    def __iter__(self) -> Iterator[int]:
        for number in sorted(self._log.places):
            yield from self._log.block(number).losses

    def __reversed__(self) -> Iterator[int]:
        last = self._log.last_loss
        if last is not None:
            yield last[0]
            for number in sorted(self._log.places, reverse=True):
                yield from (step for step in reversed(self._log.block(number).losses) if step != last[0])

    def __len__(self) -> int:
        return sum(1 for _ in self)
