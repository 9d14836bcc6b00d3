"""What a long training left in its event log: blocks of steps that are read there when they are asked for."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol, TypeAlias

from detaudit.auditor.evidence.event_pieces import Piece, pieces
from detaudit.auditor.evidence.event_records import Event, Line
from detaudit.errors import StorageError
from detaudit.model import Number, Stage, as_number
from detaudit.model.blocks import BlockedSteps, HeldSteps, Steps, block_of, start
from detaudit.model.tree import Tree


class Held:
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
        self._latest: tuple[int, Held] = -1, Held()

    @property
    def is_there(self) -> bool:
        """Whether the event log is there."""
        return self._origin.path.exists()

    def block(self, number: int) -> Held:
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
        found = self._pieces(number)
        key = (number, self._origin.framework, self._origin.lane, *(piece.digest for piece in found))
        if key not in known:
            known[key] = self._digests(number), self._held(number, found).losses
        digests, losses = known[key]
        if digests != self._digests(number):
            self._refuse()
        return losses

    def _read(self, number: int) -> Held:
        return self._held(number, self._pieces(number))

    def _pieces(self, number: int) -> list[Piece]:
        if not self.is_there:
            self._fetch()
        if not self.is_there:
            hint = "Put it back: the steps are in it. With `detaudit plan --records logs`, each run has its event logs."
            raise StorageError(f"{self._origin.path} is gone, or was not fetched", hint)
        return list(pieces(self._origin.path, *self.places.get(number, (0, 0))))

    def _held(self, number: int, found: Iterable[Piece]) -> Held:
        held, end = Held(), start(number + 1)
        first = start(number) if number else -math.inf
        for piece in found:
            held.add(event for event in self._origin.among(piece.lines) if first <= event.step < end)
        for stage, known in self.stages.items():
            if HeldSteps(held.digests.get(stage, {})).digests.get(number) != known.digests.get(number):
                self._refuse()
        return held

    def _digests(self, number: int) -> dict[Stage, bytes]:
        found = {stage: one.digests.get(number) for stage, one in self.stages.items()}
        return {stage: digest for stage, digest in found.items() if digest is not None}

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

    def held(self, known: KnownLosses) -> dict[int, Number]:
        """Return all losses. Raises StorageError if the event log is not the same any more."""
        found: dict[int, Number] = {}
        for number in sorted(self.log.places):
            found.update(self.log.losses(number, known))
        return found
