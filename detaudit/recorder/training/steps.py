"""Record what one framework trains in one process: count the steps, hold the weights, and write the events."""

from __future__ import annotations

import gc
import threading

from ..process import handlers
from . import digest, generators
from .current import CurrentStep, LastLoss
from .each_weight import EachWeight, is_listed
from .outputs import Outputs
from .pending import PendingEvents
from .weights import HeldWeights, is_due

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..process.recorder import Recorder
    from .reader import FrameworkReader
    from .states import State


class Training:
    """Collects the events of a step and writes them together. Steps count from 1; step 0 is the initial state.

    ``lane`` distinguishes trainings of one framework and process, see wire.py. The one with ``owns_states`` writes what
    models hold at the end.
    """

    def __init__(
        self, framework: str, recorder: Recorder, reader: FrameworkReader, *, beside: Training | None = None
    ) -> None:
        self._framework, self._reader, self._recorder = framework, reader, recorder
        self.lane, self.owns_states, self._listed = recorder.lane, beside is None, beside is None
        self._sink, self._stages, self._stepped = recorder.sink, recorder.stages, recorder.stepped
        self._until = recorder.until
        self.ends_late = True
        self.states: list[State] = []
        self.outputs: Outputs = Outputs(framework, recorder, reader) if beside is None else beside.outputs
        if beside is None:
            recorder.trainings.append(self)
        self.forget()

    def forget(self) -> None:
        """Start over, as in a forked child."""
        self.lock = threading.RLock()
        for states in self.states:
            states.forget()
        self.steps = self.losses_seen = 0
        self._current = CurrentStep(self._reader)
        self._events = PendingEvents(self._framework)
        self.weights = HeldWeights(self._reader, lambda: self.lock)
        self._each_weight, self._final_loss = EachWeight(self._reader, self._events), LastLoss()
        self._final_steps = -1
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
        """Whether anything was trained since the start, or since this training was forgotten."""
        return self.steps > 0 or self.pending

    def beside(self) -> Training:
        """Return a training of the same framework in a thread, with steps of its own from the first event on."""
        other = Training(self._framework, self._recorder, self._reader, beside=self)
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
        self._events.add(self.lane, step, stage, digest_, value)

    def wants(self, *stages: str) -> bool:
        """Return whether to record any of these stages."""
        return not self._stages.isdisjoint(stages)

    def inputs(self, tensors: Sequence[Any]) -> None:
        """Record the inputs of the model in the current step."""
        handlers.raise_postponed()
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
        self.generators()
        handlers.raise_postponed()
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
        handlers.raise_postponed()
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

    def _update(self, key: Any, tensors: Sequence[Any]) -> None:
        parts = self._reader.parts(tensors)
        self.event(self.steps, "update", digest.of_parts(parts))
        if is_listed(self.steps):
            line = {"k": "weights", "fw": self._framework, "lane": self.lane, "step": self.steps}
            self.guarded("weights", lambda: self._each_weight.add(line, key, tensors, parts, self.states))

    def guarded(self, where: str, function: Callable[[], object]) -> None:
        """Call ``function`` and record its exception."""
        self._sink.guarded(where, function)

    def freed(self, tensors: Sequence[Sequence[Any]]) -> None:
        """Write the state of a model that is freed: its tensors as described in wire.py."""
        if tensors:
            self._state(tensors, live=False)

    def _state(self, tensors: Sequence[Sequence[Any]], live: bool, outputs: str | None = None) -> None:
        line = {"k": "state", "fw": self._framework, "lane": self.lane, "live": live, "tensors": tensors}
        self._sink.write({**line, "outputs": outputs} if outputs else line)

    def due(self, step: int, tensors: Sequence[Any]) -> bool:
        """Return whether these tensors are digested at this step."""
        due = step == self._until or is_due(step, self._reader, tensors)
        self._sparse = self._sparse or not due
        return due

    def unseen_step(self) -> None:
        """Count a step with known losses but unknown weights, such as one inside a compiled loop."""
        self._end_step()
        self._stepped(self.steps)

    def write(self) -> None:
        """Write the events of the steps that ended, with one system call."""
        if ended := self._events.through(self.steps):
            self._sink.append(ended)

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

    def finish_all(self, beside: Sequence[Training]) -> None:
        """Write the ends of the trainings of other threads, and of this one."""
        if self.states and not self.lane:  # at the end of the process, not of a task
            gc.collect()  # otherwise chance decides which of the unreachable models are alive
        for other in beside:
            other.finish()
        self.finish(any([other.steps for other in beside]))

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
            held = [record for states in self.states for record in states.at_end(self.lane > 0)]
            if self.states or outputs:
                self._state(held, live=True, outputs=outputs)
        for states in self.states:
            states.end()
