"""Count the steps of a training, and write what each is made of."""

from __future__ import annotations

import gc
import threading

from ..process import guard
from ..process.log import PendingEvents
from . import digest, generators
from .held import Held
from .outputs import Outputs
from .weights import EachWeight, HeldWeights, is_due, is_listed

# Collect the inputs and losses of the current step of a training.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from ..process.recorder import Recorder
    from .digest import FrameworkReader, Part
    from .models import State


_MOST = 256


class LastLoss:
    """The last loss with one element, and its dtype; both are None without one."""

    def __init__(self, value: float | None = None, dtype: str | None = None) -> None:
        self.value, self.dtype = value, dtype

    def as_record(self) -> dict[str, str | None]:
        """Return what ``final`` in wire.py says of it."""
        return {"loss": None if self.value is None else self.value.hex(), "loss_dtype": self.dtype or None}


class CurrentStep:
    """The inputs and losses since the last step.

    A gradient that is not followed by a step, such as one by the inputs of a model, leaves its own behind. So that a
    script may compute any number of them, the oldest are folded into one part of the digest.
    """

    def __init__(self, reader: FrameworkReader) -> None:
        self._reader = reader
        self._inputs: list[Part] = []
        self._of_losses = 0
        self._losses: list[Any] = []
        self._folded: list[Part] = []
        self._dtype: str | None = None
        self._shared = False

    @property
    def pending(self) -> bool:
        """Whether there is a loss."""
        return bool(self._losses)

    def add_inputs(self, parts: Sequence[Part]) -> None:
        """Add inputs of a model."""
        self._inputs += parts

    def add_loss(self, tensor: Any, dtype: str | None = None) -> None:
        """Add a loss. All inputs so far led to it. ``dtype`` is its type if it was converted, empty if not known."""
        self._losses.append(tensor)
        self._dtype = dtype
        self._of_losses = len(self._inputs)
        if len(self._losses) > _MOST:
            self._folded = [_one(self._folded + self._reader.parts(self._losses[:-1]))]
            self._losses = self._losses[-1:]
            self._inputs = [_one(self._inputs)] if self._inputs else []
            self._of_losses = len(self._inputs)

    def take_over(self, other: CurrentStep) -> None:
        """Take over what another training collected. Threads do so in any order, so that is none of their parts."""
        self._shared = True
        self._dtype = other._dtype if other._losses else self._dtype
        self._inputs, led = self._inputs + other._inputs, bool(other._losses)
        self._of_losses = len(self._inputs) if led else self._of_losses  # else they lead to a loss that is to come
        self._losses, other._losses = self._losses + other._losses, []
        self._folded, other._folded = self._folded + other._folded, []
        other._inputs, other._of_losses = [], 0

    def take(self) -> tuple[list[Part], list[Part], LastLoss]:
        """Return the parts of the inputs and of the losses, and the last loss, and start the next step.

        Without an optimizer, the end of a step is detected only after the inputs of the next forward pass, which stay.
        """
        inputs = self._inputs[: self._of_losses] if self._losses else self._inputs
        parts, last = self._reader.parts(self._losses), self._losses[-1:]
        self._inputs = self._inputs[len(inputs) :]
        if self._shared:
            inputs = sorted(inputs)
            order = sorted(range(len(parts)), key=lambda at: parts[at][1:])
            parts, last = [parts[at] for at in order], [self._losses[at] for at in order[-1:]]
            parts = [("", *part[1:]) for part in parts]
        losses = self._folded + parts
        self._losses, self._folded, self._of_losses, self._shared = [], [], 0, False
        dtype = losses[-1][1] if last and self._dtype is None else self._dtype
        return inputs, losses, LastLoss(self._reader.scalar(last[0]), dtype) if last else LastLoss()

    def discard(self) -> None:
        """Drop the losses and what led to them."""
        self._inputs = self._inputs[self._of_losses :]
        self._losses, self._folded, self._of_losses = [], [], 0


def _one(parts: Sequence[Part]) -> Part:
    return "folded", "", (len(parts),), int(digest.of_parts(parts)[:16], 16)


# Record what one framework trains in one process: count the steps, hold the weights, and write the events.


class Training:
    """Collects the events of a step and writes them together. Steps count from 1; step 0 is the initial state.

    ``lane`` distinguishes trainings of one framework and process, see wire.py. The one with ``owns_states`` writes what
    models hold at the end.
    """

    def __init__(
        self, framework: str, recorder: Recorder, reader: FrameworkReader, *, main: Training | None = None
    ) -> None:
        self._framework, self._reader, self._recorder = framework, reader, recorder
        self.lane, self.owns_states, self._listed = recorder.lane, main is None, main is None
        self._sink, self._stages, self._stepped = recorder.sink, recorder.stages, recorder.stepped
        self._until = recorder.until
        self._resumable: Held = Held() if main is None else main._resumable
        self.held: Callable[[], Iterable[tuple[str, str, str, str]]] = tuple
        self.ends_late = True
        self.states: list[State] = []
        self.outputs: Outputs = Outputs(framework, recorder, reader) if main is None else main.outputs
        if main is None:
            recorder.trainings.append(self)
        self.forget()

    def forget(self) -> None:
        """Start over, as in a forked child."""
        self.lock = threading.RLock()
        for states in self.states:
            states.forget()
        self.steps = self.losses_seen = 0
        self._current = CurrentStep(self._reader)
        self._events = PendingEvents()
        self.weights = HeldWeights(self._reader, lambda: self.lock)
        self._each_weight, self._final_loss = EachWeight(self._reader, self._events), LastLoss()
        self._final_steps = self._collected = -1
        self._sparse = False
        self._rng_step = 0
        if self.owns_states:
            self.outputs.forget()

    @property
    def pending(self) -> bool:
        """Whether a loss was recorded whose step has not been written."""
        return self._current.pending

    @property
    def under_way(self) -> bool:
        """Whether anything was trained, or models returned anything, since the start or since this was forgotten."""
        return self.steps > 0 or self.pending or (self.owns_states and self.outputs.pending)

    def for_thread(self) -> Training:
        """Return a training of the same framework in a thread, with steps of its own from the first event on."""
        other = type(self)(self._framework, self._recorder, self._reader, main=self)
        other.lock, other.states = self.lock, self.states
        other.ends_late = self.ends_late
        return other

    def _list(self) -> None:
        self._listed, self.lane = True, self._recorder.new_lane()
        self._recorder.trainings.append(self)

    def take_over(self, other: Training) -> None:
        """Take over what was recorded of a step that another training began, and that ends in this one."""
        self._current.take_over(other._current)
        other._events.clear()

    def discard(self) -> None:
        """Drop what was recorded of the current step: its gradients were thrown away, as after a probe."""
        self._current.discard()
        self._rng_step = min(self._rng_step, self.steps)
        self._events.clear(after=self.steps)

    def current_step(self, after_loss: bool) -> int:
        """Return the number of the current step.

        If no hook detects the end of a step (``ends_late``), the step is written at the next loss. What is computed
        after a loss then counts as part of the next step, unless the caller knows that it follows from this loss
        (``after_loss``), like a gradient.
        """
        return self.steps + 1 + (self.ends_late and self.pending and not after_loss)

    def event(self, step: int, stage: str, digest_: str, value: float | None = None) -> None:
        """Keep an event to be written at the end of its step."""
        if not self._listed:
            self._list()
        self._events.add(step, self.lane, stage, digest_, value)

    def wants(self, *stages: str) -> bool:
        """Return whether to record any of these stages."""
        return not self._stages.isdisjoint(stages)

    def begins(self) -> None:
        """Note that the next step begins, or goes on: see Held."""
        if self._resumable and not self.pending:
            self._resumable.begins(self)

    def began(self) -> None:
        """Note that the next step began earlier, and that nothing shows what was held then."""
        self._resumable.seen = self.steps

    def held_at(self, step: int, values: Sequence[Sequence[str]]) -> None:
        """Write what this training held when a step began."""
        self._sink.write({"k": "held", "fw": self._framework, "lane": self.lane, "step": step, "values": values})

    def inputs(self, tensors: Sequence[Any]) -> None:
        """Record the inputs of the model in the current step."""
        guard.raise_postponed()
        self._current.add_inputs(self._reader.parts(tensors))

    def gradients(self, tensors: Sequence[Any], own: str | None = None) -> None:
        """Record the gradients of this step. ``own`` is a digest of what this rank computed, None if it is alone."""
        if own is not None and self.wants("backward"):
            self.event(self.steps + 1, "backward", own)
        stage = "backward" if own is None else "reduce"
        if self.wants(stage) and self.due(self.steps + 1, tensors):
            self.event(self.steps + 1, stage, self._digest(tensors))

    def generators(self) -> None:
        """Record the states of the random generators, once in a step."""
        if self._rng_step <= self.steps and self.wants("rng"):
            if not self._rng_step:
                self._events.add_line(0, {"k": "generators", "states": generators.digests()})
            self._rng_step = self.steps + 1
            self.event(self._rng_step, "rng", generators.state_digest())

    def loss(self, tensor: Any, dtype: str | None = None) -> None:
        """Keep a loss of the current step, see CurrentStep. Its value is read when the step is written."""
        if self._resumable and self._resumable.seen != self.steps:
            self.begins()  # no model was seen to be called
        self.generators()
        guard.raise_postponed()
        self._current.add_loss(tensor, dtype)
        self.losses_seen += 1
        self.outputs.updated()

    def initial(self, tensors: Sequence[Any]) -> None:
        """Record weights before their first training step."""
        if self.wants("init"):
            self.event(0 if self.steps == 0 else self.steps + 1, "init", self._digest(tensors))

    def step(self, key: Any, tensors: Sequence[Any], owner: Any = None) -> None:
        """Write a finished step: its losses, and the weights that it updated.

        ``key`` identifies the set of weights. Once its ``owner`` is freed, the set is summed up and released.
        """
        guard.raise_postponed()
        self._end_step()
        if self.wants("update") and self.due(self.steps, tensors):
            self._update(key, tensors)
        for states in self.states:
            state = states.at_step()
            if state is not None:
                self.event(self.steps, "state", state)
        self.weights.hold(key, tensors, owner)
        self._stepped(self.steps)
        self.write()
        self._resumable.ended(self)

    def _update(self, key: Any, tensors: Sequence[Any]) -> None:
        parts = self._reader.parts(tensors)
        self.event(self.steps, "update", digest.of_parts(parts))
        if is_listed(self.steps):
            line = {"k": "weights", "fw": self._framework, "lane": self.lane, "step": self.steps}
            self.guarded("weights", lambda: self._each_weight.add(line, key, tensors, parts, self.states))

    def guarded(self, where: str, function: Callable[[], object]) -> None:
        """Call ``function`` and record its exception."""
        self._sink.guarded(where, function)

    def freed(self, tensors: Sequence[Sequence[Any]], early: bool) -> None:
        """Write the state of a model that is freed: its tensors, and whether it ran early, as described in wire.py."""
        if tensors:
            self._state(tensors, live=False, **({"early": True} if early or not self.steps else {}))

    def _state(self, tensors: Sequence[Sequence[Any]], live: bool, **more: Any) -> None:
        line = {"k": "state", "fw": self._framework, "lane": self.lane, "live": live, "tensors": tensors}
        self._sink.write({**line, **more})

    def due(self, step: int, tensors: Sequence[Any]) -> bool:
        """Return whether these tensors are digested at this step."""
        due = step == self._until or is_due(step, self._reader, tensors)
        self._sparse = self._sparse or not due
        return due

    def unseen_step(self) -> None:
        """Count a step with known losses but unknown weights, such as one inside a compiled loop."""
        self._end_step()
        self._stepped(self.steps)
        self._resumable.ended(self)

    def write(self) -> None:
        """Write the events of the steps that ended, with one system call."""
        rows, lines = self._events.through(self.steps)
        if rows or lines:
            self._sink.write_rows(self._framework, rows, lines)

    def _end_step(self) -> None:
        self.steps += 1
        self.outputs.began = True
        inputs, losses, last = self._current.take()
        if inputs:
            self.event(self.steps, "batch", digest.of_parts(inputs))
        if losses and self.wants("forward"):
            self.event(self.steps, "forward", digest.of_parts(losses), last.value)
        self._final_loss = last if losses and last.value is not None else self._final_loss

    def _digest(self, tensors: Sequence[Any]) -> str:
        return digest.of_parts(self._reader.parts(tensors))

    def finish_all(self, trainings: Sequence[Training]) -> None:
        """Write the ends of the trainings of other threads, and of this one."""
        others_trained = any([other.steps for other in trainings])
        again = self.steps == self._collected and not others_trained  # then nothing more is written
        if self.states and not self.lane and not again:  # at the end of the process, not of a task
            self._collected = self.steps
            gc.collect()  # otherwise chance decides which of the unreachable models are alive
        for other in trainings:
            other.finish()
        self.finish(others_trained)

    def finish(self, others_trained: bool = False) -> None:
        """Write the final weights and states. A later call writes them again only if there were more steps.

        If only ``others_trained``, in threads, the states of models and the last outputs are written all the same.
        """
        with self.lock:
            self.write()
            if self.owns_states:
                self.outputs.finish()
            if self.steps == self._final_steps or self.steps == 0:
                self._end_states(others_trained)
                return
            self._final_steps = self.steps
            line = {"k": "final", "fw": self._framework, "lane": self.lane, "steps": self.steps, "sparse": self._sparse}
            weights = self.weights.sum_up().as_record()
            outputs = self.outputs.summary() if self.owns_states else None
            self._sink.write({**line, **self._final_loss.as_record(), **weights, "outputs": outputs})
            self._end_states(written=True)

    def _end_states(self, written: bool) -> None:
        if not self.owns_states:
            return
        if written:
            outputs = None if self.steps else self.outputs.summary()  # otherwise they are among the final weights
            records = [record for states in self.states for record in states.at_end(self.lane > 0)]
            if self.states or outputs:
                self._state(records, live=True, **({"outputs": outputs} if outputs else {}))
        for states in self.states:
            states.end()
