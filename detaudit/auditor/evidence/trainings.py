"""Put a training together from the lines of an event log."""

import hashlib
from collections.abc import Mapping

from detaudit.auditor.evidence.event_records import Event, Final, State
from detaudit.model import FinalState, ModelTensor, Number, Stage, Training, Weight, as_number


class TrainingSoFar:
    """A training that grows with each event."""

    def __init__(self, framework: str) -> None:
        self._framework = framework
        self._digests: dict[Stage, dict[int, tuple[str, ...]]] = {}
        self._losses: dict[int, Number] = {}
        self.final: Final | None = None
        self.freed: list[State] = []
        self.live: State | None = None

    def take(self, line: Event | Final | State) -> None:
        """Add a line."""
        match line:
            case Event():
                self.add(line)
            case Final():
                self.final = line
            case State():
                self.hold(line)

    def add(self, event: Event) -> None:
        """Add an event. A step may have several of one stage, such as the weights of two models."""
        steps = self._digests.setdefault(event.stage, {})
        steps[event.step] = (*steps.get(event.step, ()), event.digest)
        if event.value is not None:
            self._losses[event.step] = _number(event.value)

    def hold(self, state: State) -> None:
        """Add the state of models."""
        if state.live:
            self.live = state
        else:
            self.freed.append(state)

    def training(self, unplaced: bool = False) -> Training:
        """Return the training so far."""
        return Training(
            framework=self._framework,
            unplaced=unplaced,
            steps=max((step for steps in self._digests.values() for step in steps), default=0),
            digests=self._digests,
            losses=self._losses,
            final=_final_state(self.final, self._states(), self._outputs()) if self.final else None,
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


def together(growing: Mapping[tuple[str, int], TrainingSoFar]) -> tuple[Training, ...]:
    """Return the trainings of a process, by framework and lane. It records the models of its threads together."""
    for (framework, lane), so_far in growing.items():
        beside = [one for (fw, n), one in growing.items() if fw == framework and n and one.final]
        if not lane and not so_far.final and beside:
            first = min(beside, key=lambda one: in_order(one.training()))
            first.freed += so_far.freed
            first.live = first.live or so_far.live
    return tuple(so_far.training(unplaced=lane > 0) for (_, lane), so_far in growing.items())


def in_order(training: Training) -> str:
    """Return a text by which trainings are put in an order that is the same in every run with the same results."""
    final = training.final or FinalState()
    initial = sorted(training.digests.get(Stage.INIT, {}).items())
    return repr((training.framework, initial, training.steps, final.digest, final.state_digest, training.last_loss))


def _model_tensor(kind: str, name: str, buffer: bool, dtype: str, shape: tuple[int, ...], digest: str) -> ModelTensor:
    # Which model a module belongs to is shown, but not compared: it may be part of several.
    identity = f"{kind}|{name.rpartition('.')[2]}|{dtype}|{shape}|{digest}"
    return ModelTensor(name=name, buffer=buffer, digest=hashlib.blake2b(identity.encode(), digest_size=8).hexdigest())


def _number(text: str) -> Number:
    return as_number(float.fromhex(text))


def _final_state(final: Final, state: tuple[ModelTensor, ...], outputs: str | None) -> FinalState:
    loss = _number(final.loss) if final.loss else None
    if not final.params:
        return FinalState(loss=loss, sampled=final.sparse, state=state, outputs=outputs)
    return FinalState(
        digest=final.digest,
        sum=_number(final.sum) if final.sum else None,
        loss=loss,
        devices=final.devices,
        sampled=final.sparse,
        weights=tuple(
            Weight(dtype=dtype, shape=shape, digest=digest, sum=_number(total))
            for dtype, shape, digest, total in final.weights
        ),
        state=state,
        outputs=outputs,
    )
