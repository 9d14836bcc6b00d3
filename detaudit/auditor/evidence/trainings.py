"""Put a training together from the lines of an event log."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from detaudit.auditor.evidence.event_pieces import Piece
from detaudit.auditor.evidence.event_records import Event, Final, State, WeightsLine
from detaudit.auditor.evidence.log_blocks import Held, LoggedLosses, LoggedSteps, Origin
from detaudit.auditor.evidence.logged import Block, Log
from detaudit.auditor.evidence.weight_sets import SetsSoFar, plain
from detaudit.model import FinalState, ModelTensor, Number, Stage, Training, Weight, as_number, blocks

MOST_HELD = 256
"""The number of events up to which a training is held in memory."""


MOST_KNOWN = 4096
"""The number of blocks that are recognized when they are read again."""


class TrainingSoFar:
    """A training that grows with each event. A long one is left in its event log, where it is read in blocks."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._held = Held()
        self._log: Log | None = None
        self._count, self._start = 0, 0
        self._sets = SetsSoFar()
        self.final: Final | None = None
        self.freed: list[State] = []
        self.live: State | None = None

    def take(self, line: Final | State | WeightsLine) -> None:
        """Add a line."""
        if isinstance(line, WeightsLine):
            self._sets.take(line)
        elif isinstance(line, Final):
            self.final = line
        elif line.live:
            self.live = line
        else:
            self.freed.append(line)

    def add(self, events: Sequence[Event], start: int, end: int) -> None:
        """Add events, which lie between these bytes of the event log."""
        if self._log is not None:
            self._log.add(events, start, end)
            return
        self._start = self._start if self._count else start
        self._count += len(events)
        self._held.add(events)
        if self._count > MOST_HELD:
            self._log = Log(self._origin)
            self._log.take_held(self._held, self._start, end)
            self._held = Held()

    def take_block(self, block: Block, start: int, end: int) -> bool:
        """Add a block, whose events lie between these bytes of the event log; return whether it can be added."""
        return self._log is not None and self._log.take(block, start, end)

    @property
    def block(self) -> Block | None:
        """The block of the events that were added last, if all of it was added with them."""
        return self._log.alone if self._log is not None else None

    def training(self, unplaced: bool = False) -> Training:
        """Return the training so far."""
        if self._log is not None and not self._log.ordered:
            self._held, self._log = self._origin.held(), None
        log, held = self._log, self._held
        return Training(
            framework=self._origin.framework,
            unplaced=unplaced,
            steps=log.last_step if log else max((step for steps in held.digests.values() for step in steps), default=0),
            digests={stage: LoggedSteps(log, stage) for stage in log.stages} if log else held.digests,
            losses=LoggedLosses(log) if log else held.losses,
            final=_final_state(self.final, self._states(), self._outputs()) if self.final else None,
            weight_sets=self._sets.sets(self.final),
        )

    def _outputs(self) -> str | None:
        """Return the digest of the last outputs, which a process writes with the states if only its threads trained."""
        found = self.final.outputs if self.final else None
        return found or (self.live.outputs if self.live else None)

    def _states(self) -> tuple[ModelTensor, ...]:
        """Return the tensors of all models, sorted: models are freed in no fixed order."""
        states = [*self.freed, *([self.live] if self.live else [])]
        found = [_model_tensor(*tensor) for state in states for tensor in state.tensors]
        return tuple(sorted(found, key=lambda tensor: (tensor.name, tensor.digest)))


class TrainingsSoFar:
    """The trainings of one process, by framework and lane, which grow with its event log."""

    def __init__(self, path: Path, known: dict[bytes, Block]) -> None:
        self._path, self._known = path.absolute(), known
        self._growing: dict[tuple[str, int], TrainingSoFar] = {}

    @property
    def lanes(self) -> tuple[int, ...]:
        """The lane of each."""
        return tuple(lane for _, lane in self._growing)

    def _of(self, framework: str, lane: int) -> TrainingSoFar:
        key = framework, lane
        if key not in self._growing:
            self._growing[key] = TrainingSoFar(Origin(self._path, framework, lane))
        return self._growing[key]

    def take(self, line: Final | State | WeightsLine) -> None:
        """Add a line."""
        self._of(line.fw, line.lane).take(line)

    def add(self, events: Sequence[Event], piece: Piece) -> set[str]:
        """Add events of a piece of the event log, and return their frameworks."""
        frameworks, lanes = {event.fw for event in events}, {event.lane for event in events}
        if len(frameworks) == len(lanes) == 1:
            so_far = self._of(events[0].fw, events[0].lane)
            so_far.add(events, piece.start, piece.end)
            block = so_far.block if len(events) == len(piece.lines) else None
            if block is not None and len(self._known) < MOST_KNOWN:
                self._known[piece.digest] = block
            return frameworks
        found: defaultdict[tuple[str, int], list[Event]] = defaultdict(list)
        for event in events:
            found[event.fw, event.lane].append(event)
        for key, part in found.items():
            self._of(*key).add(part, piece.start, piece.end)
        return frameworks

    def add_known(self, piece: Piece) -> str | None:
        """Add a piece that was read before, in this log or in one of another run, and return its framework.

        Return None if it has to be read.
        """
        block = self._known.get(piece.digest)
        if block is None or not self._of(block.framework, block.lane).take_block(block, piece.start, piece.end):
            return None
        return block.framework

    def trainings(self) -> tuple[Training, ...]:
        """Return the trainings. A process records the models of its threads together."""
        for (framework, lane), so_far in self._growing.items():
            beside = [one for (fw, n), one in self._growing.items() if fw == framework and n and one.final]
            if not lane and not so_far.final and beside:
                first = min(beside, key=lambda one: in_order(one.training()))
                first.freed += so_far.freed
                first.live = first.live or so_far.live
        return tuple(so_far.training(unplaced=lane > 0) for (_, lane), so_far in self._growing.items())


def in_order(training: Training) -> str:
    """Return a text by which trainings are put in an order that is the same in every run with the same results."""
    final = training.final or FinalState()
    initial = blocks.fingerprint(training.digests.get(Stage.INIT, {}))
    return repr((training.framework, initial, training.steps, final.digest, final.state_digest, training.last_loss))


def _model_tensor(kind: str, name: str, buffer: bool, dtype: str, shape: tuple[int, ...], digest: str) -> ModelTensor:
    # Which model a module belongs to is shown, but not compared: it may be part of several.
    identity = f"{kind}|{name.rpartition('.')[2]}|{dtype}|{shape}|{digest}"
    return ModelTensor(name=name, buffer=buffer, digest=hashlib.blake2b(identity.encode(), digest_size=8).hexdigest())


def _number(text: str) -> Number:
    return as_number(float.fromhex(text))


def _final_state(final: Final, state: tuple[ModelTensor, ...], outputs: str | None) -> FinalState:
    loss = _number(final.loss) if final.loss else None
    loss_dtype = plain(final.loss_dtype) if final.loss_dtype else None
    if not final.params:
        return FinalState(loss=loss, loss_dtype=loss_dtype, sampled=final.sparse, state=state, outputs=outputs)
    return FinalState(
        digest=final.digest,
        sum=_number(final.sum) if final.sum else None,
        loss=loss,
        loss_dtype=loss_dtype,
        devices=final.devices,
        sampled=final.sparse,
        weights=tuple(
            Weight(dtype=dtype, shape=shape, digest=digest, sum=_number(total))
            for dtype, shape, digest, total in final.weights
        ),
        state=state,
        outputs=outputs,
    )
