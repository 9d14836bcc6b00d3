"""Put a training together from the lines of an event log."""

import hashlib

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

    def training(self) -> Training:
        """Return the training so far."""
        return Training(
            framework=self._framework,
            steps=max((step for steps in self._digests.values() for step in steps), default=0),
            digests=self._digests,
            losses=self._losses,
            final=_final_state(self.final, self._states()) if self.final else None,
        )

    def _states(self) -> tuple[ModelTensor, ...]:
        """Return the tensors of all models, sorted: models are freed in no fixed order."""
        states = [*self.freed, *([self.live] if self.live else [])]
        found = [_model_tensor(*tensor) for state in states for tensor in state.tensors]
        return tuple(sorted(found, key=lambda tensor: (tensor.name, tensor.digest)))


def _model_tensor(kind: str, name: str, buffer: bool, dtype: str, shape: tuple[int, ...], digest: str) -> ModelTensor:
    # Which model a module belongs to is shown, but not compared: it may be part of several.
    identity = f"{kind}|{name.rpartition('.')[2]}|{dtype}|{shape}|{digest}"
    return ModelTensor(name=name, buffer=buffer, digest=hashlib.blake2b(identity.encode(), digest_size=8).hexdigest())


def _number(text: str) -> Number:
    return as_number(float.fromhex(text))


def _final_state(final: Final, state: tuple[ModelTensor, ...]) -> FinalState:
    loss = _number(final.loss) if final.loss else None
    if not final.params:
        return FinalState(loss=loss, sampled=final.sparse, state=state, outputs=final.outputs)
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
        outputs=final.outputs,
    )
