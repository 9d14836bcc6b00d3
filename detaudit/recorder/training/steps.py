"""Record what one framework trains in one process: count the steps, hold the weights, and write the events."""

from __future__ import annotations

import threading

from ... import wire
from . import digest, generators
from .outputs import Outputs
from .weights import HeldWeights

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from ..process.recorder import Recorder
    from .digest import Part
    from .reader import FrameworkReader

EVERY_STEP_BYTES = 256 * 2**20
"""Weights of up to this size are digested at every step, larger ones at steps 1, 2, 4, 8, … and at the end.

Their size is the same in all runs of an audit, and so are the steps at which they are digested.
"""


if TYPE_CHECKING:

    class State(Protocol):
        """What a training leaves behind beside the weights that it updates."""

        def at_step(self) -> str | None:
            """Return a digest of it after a step, None if there is nothing to compare."""

        def at_end(self) -> list[list[Any]]:
            """Return its tensors as described for ``state`` in wire.py."""

        def end(self) -> None:
            """Stop recording: the process ends, and nothing was trained."""

        def forget(self) -> None:
            """Start over, as in a forked child."""


def _line(fields: dict[str, Any]) -> str:
    import json

    return json.dumps(fields) + "\n"


class Training:
    """Collects the events of a step and writes them together. Steps count from 1; step 0 is the initial state."""

    def __init__(self, framework: str, recorder: Recorder, reader: FrameworkReader) -> None:
        self._framework, self._reader = framework, reader
        self._sink, self._stages, self._stepped = recorder.sink, recorder.stages, recorder.stepped
        self.ends_late = True
        self.states: list[State] = []
        self.outputs = Outputs(framework, recorder, reader, lambda: bool(self.steps or self._losses))
        recorder.trainings.append(self)
        self.lock = threading.RLock()
        self.forget()

    def forget(self) -> None:
        """Start over, as in a forked child."""
        self.lock = threading.RLock()
        for states in self.states:
            states.forget()
        self.steps = self.losses_seen = 0
        self._losses: list[Any] = []
        self._inputs: list[Part] = []
        self._used_inputs = 0
        self._events: list[str] = []
        self._weights = HeldWeights(self._reader)
        self._final_loss: float | None = None
        self._final_steps = -1
        self._sparse = False
        self._rng_step = 0
        self.outputs.forget()

    @property
    def pending(self) -> bool:
        """Whether a loss was recorded whose step has not been written."""
        return bool(self._losses)

    def current_step(self, after_loss: bool) -> int:
        """Return the number of the current step.

        If no hook detects the end of a step (``ends_late``), the step is written at the next loss. What is computed
        after a loss then counts as part of the next step, unless the caller knows that it follows from this loss
        (``after_loss``), like a gradient.
        """
        return self.steps + 1 + (self.ends_late and self.pending and not after_loss)

    def event(self, step: int, stage: str, digest_: str, value: float | None = None) -> None:
        """Keep an event to be written at the end of its step."""
        # This runs at every step, and digests and float.hex() need no escaping.
        shown = "null" if value is None else f'"{float(value).hex()}"'
        self._events.append(
            f'{{"k":"event","fw":"{self._framework}","step":{step},"stage":"{stage}",'
            f'"digest":"{digest_}","value":{shown}}}\n'
        )

    def wants(self, stage: str) -> bool:
        """Return whether to record this stage."""
        return stage in self._stages

    def inputs(self, tensors: Sequence[Any]) -> None:
        """Record the inputs of the model in the current step."""
        self._inputs += self._reader.parts(tensors)

    def gradients(self, tensors: Sequence[Any]) -> None:
        """Record the gradients of the current step."""
        if self._due(self.steps + 1, tensors):
            self.event(self.steps + 1, "backward", self._digest(tensors))

    def generators(self) -> None:
        """Record the states of the random generators, once in a step."""
        if self._rng_step <= self.steps and self.wants("rng"):
            if not self._rng_step:
                self._events.append(_line({"k": "generators", "states": generators.digests()}))
            self._rng_step = self.steps + 1
            self.event(self._rng_step, "rng", generators.state_digest())

    def loss(self, tensor: Any) -> None:
        """Keep a loss of the current step. Its value is read when the step is written."""
        self.generators()
        self._losses.append(tensor)
        self.losses_seen += 1
        self.outputs.updated()
        self._used_inputs = len(self._inputs)

    def initial(self, tensors: Sequence[Any]) -> None:
        """Record weights before their first training step."""
        if self.wants("init"):
            self.event(0 if self.steps == 0 else self.steps + 1, "init", self._digest(tensors))

    def step(self, key: Any, tensors: Sequence[Any], owner: Any = None) -> None:
        """Write a finished step: its losses, and the weights that it updated.

        ``key`` identifies the set of weights. Once its ``owner`` is freed, the set is summed up and released.
        """
        self.steps += 1
        self._forward(self.steps)
        if self.wants("update") and self._due(self.steps, tensors):
            self.event(self.steps, "update", self._digest(tensors))
        for states in self.states:
            state = states.at_step()
            if state is not None:
                self.event(self.steps, "state", state)
        self._weights.hold(key, tensors, owner)
        self._stepped(self.steps)
        self.write()

    def guarded(self, where: str, function: Callable[[], object]) -> None:
        """Call ``function`` and record its exception."""
        self._sink.guarded(where, function)

    def freed(self, tensors: Sequence[Sequence[Any]]) -> None:
        """Write the state of a model that is freed: its tensors as described in wire.py."""
        if tensors:
            self._state(tensors, live=False)

    def _state(self, tensors: Sequence[Sequence[Any]], live: bool) -> None:
        self._sink.write({"k": "state", "fw": self._framework, "live": live, "tensors": tensors})

    def _due(self, step: int, tensors: Sequence[Any]) -> bool:
        if step & (step - 1) == 0 or sum([self._reader.size(tensor) for tensor in tensors]) <= EVERY_STEP_BYTES:
            return True
        self._sparse = True
        return False

    def unseen_step(self) -> None:
        """Count a step with known losses but unknown weights, such as one inside a compiled loop."""
        self.steps += 1
        self._forward(self.steps)
        self._stepped(self.steps)

    def write(self) -> None:
        """Write the events collected so far with one system call."""
        events, self._events = self._events, []
        if events:
            self._sink.append("".join(events))

    def _forward(self, step: int) -> None:
        # Without an optimizer, the end of a step is detected only after the inputs of the next forward pass.
        used = self._used_inputs if self._losses else len(self._inputs)
        losses, self._losses, self._used_inputs = self._losses, [], 0
        inputs, self._inputs = self._inputs[:used], self._inputs[used:]
        if inputs:
            self.event(step, "batch", digest.of_parts(inputs))
        if losses:
            value = self._reader.scalar(losses[-1])
            if self.wants("forward"):
                self.event(step, "forward", self._digest(losses), value)
            self._final_loss = self._final_loss if value is None else value

    def _digest(self, tensors: Sequence[Any]) -> str:
        return digest.of_parts(self._reader.parts(tensors))

    def finish(self) -> None:
        """Write the final weights and states. A later call writes them again only if there were more steps."""
        with self.lock:
            self.write()
            self.outputs.finish()
            if self.steps == self._final_steps or self.steps == 0:
                for states in self.states:
                    states.end()
                return
            self._final_steps = self.steps
            sets = self._weights.sum_up()
            digests = [digest.of_parts([weight.part for weight in summed]) for summed in sets]
            weights = [weight for summed in sets for weight in summed]
            self._sink.write(
                {
                    "k": "final",
                    "fw": self._framework,
                    "steps": self.steps,
                    "digest": digests[0] if len(digests) == 1 else digest.of_bytes("".join(digests).encode()),
                    "sum": sum([weight.sum for weight in weights], 0.0).hex(),
                    "loss": None if self._final_loss is None else self._final_loss.hex(),
                    "params": len(weights),
                    "sparse": self._sparse,
                    "devices": sorted({weight.device for weight in weights}),
                    "weights": [weight.as_record() for weight in weights[: wire.MOST_WEIGHTS]],
                    "outputs": self.outputs.summary(),
                }
            )
            self._final_states()

    def _final_states(self) -> None:
        if self.states:
            self._state([record for states in self.states for record in states.at_end()], live=True)
