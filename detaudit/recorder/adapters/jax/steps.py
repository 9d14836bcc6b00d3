"""Turn the calls of a JAX training into steps, from their losses and the weights that they take and return."""

from __future__ import annotations

import sys

from ...process import threads
from ...training.steps import Training
from .carried import CarriedState, reference_to
from .reader import Held, JaxReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...process.recorder import Recorder
    from .plan import Plan


class ThreadSteps:
    """Passes what happens on to the steps of its thread. Each thread or task of a pool has a training of its own."""

    def __init__(self, recorder: Recorder) -> None:
        self._reader = JaxReader()
        self._main = self._steps(Training("jax", recorder, self._reader))
        self._of = threads.PerThread(self._main, lambda: self._steps(self._main.training.beside()))
        recorder.at_end(self._finish, self._forget)

    def _steps(self, training: Training) -> Steps:
        state = CarriedState(self._reader)
        training.states = [state] if training.wants("state") else []
        return Steps(training, state)

    def _forget(self) -> None:
        self._main.forget()
        self._of.restart(self._main)

    def _now(self) -> Steps:
        found: Steps = self._of.now()
        self._of.keep(found)
        return found

    def gradient(self, weights: list[Any], losses: list[Any]) -> None:
        """Handle a gradient in code that is not compiled."""
        self._now().gradient(weights, losses)

    def update(self, weights: list[Any]) -> None:
        """Handle an update in code that is not compiled."""
        self._now().update(weights)

    def before(self, plan: Plan, inputs: list[Any]) -> None:
        """Handle the inputs of a training call, before JAX may reuse their buffers."""
        self._now().before(plan, inputs)

    def after(self, plan: Plan, outputs: list[Any]) -> None:
        """Handle the outputs of that call."""
        self._now().after(plan, outputs)

    def collections(self, named: dict[str, Any]) -> None:
        """Handle collections that a model of Flax returned, by name."""
        self._now().collections(named)

    def donated(self, inputs: list[Any]) -> None:
        """Copy the weights that are held for the end, in any thread, if JAX is about to reuse their buffers."""
        for steps in (self._main, *self._of.beside):
            steps.donated(inputs)

    def _finish(self) -> None:
        with self._main.training.lock:
            for steps in (*self._of.beside, self._main):
                steps.end_last()
            self._main.training.finish_all([steps.training for steps in self._of.beside])


class Steps:
    """Records steps. A step ends with an update, or, if none is detected, when the next gradient gets new weights."""

    def __init__(self, training: Training, state: CarriedState) -> None:
        self.training, self.state = training, state
        self._start()

    def forget(self) -> None:
        """Start over, as in a forked child."""
        self.training.forget()
        self._start()

    def _start(self) -> None:
        self._entered: list[Any] = []
        self._has_updates = False
        self._known: set[Any] = set()
        self._held: list[Held] = []
        self._returned: tuple[Plan, list[Callable[[], Any]]] | None = None

    def gradient(self, weights: list[Any], losses: list[Any]) -> None:
        """Handle a gradient in code that is not compiled."""
        with self.training.lock:
            self._enter(weights)
            self._record_losses(losses, [])

    def update(self, weights: list[Any]) -> None:
        """Handle an update in code that is not compiled."""
        with self.training.lock:
            self._has_updates, self.training.ends_late = True, False
            self._end(weights)

    def before(self, plan: Plan, inputs: list[Any]) -> None:
        """Handle the inputs of a training call, before JAX may reuse their buffers."""
        with self.training.lock:
            self.state.enter(plan, inputs)
            weights = [inputs[place] for place in plan.weights]
            if not plan.updated and self._returned is not None and self._returned[0] is plan:
                # An output of the last call that is an input now shows where this function returns its weights.
                outputs = [reference() for reference in self._returned[1]]
                places = {id(array): i for i, array in enumerate(outputs) if i not in plan.passed}
                plan.updated = [places[id(array)] for array in weights if id(array) in places]
            self._enter(weights)

    def after(self, plan: Plan, outputs: list[Any]) -> None:
        """Handle the outputs of that call."""
        with self.training.lock:
            self.state.leave(plan, outputs)
            losses = [outputs[place] for place in plan.losses]
            self._record_losses(losses, [outputs[place] for place in plan.histories])
            if plan.updated:
                self._end([outputs[place] for place in plan.updated])
            else:
                self._returned = plan, [reference_to(array) for array in outputs]

    def collections(self, named: dict[str, Any]) -> None:
        """Handle collections that a model of Flax returned, by name."""
        with self.training.lock:
            self.state.collections(named)

    def donated(self, inputs: list[Any]) -> None:
        """Copy the weights that are held for the end, if JAX is about to reuse their buffers."""
        with self.training.lock:
            given = {id(array) for array in inputs}
            for held in [*self._held, *self.state.held()]:
                if id(held.array) in given:
                    held.array = sys.modules["numpy"].array(held.array)

    def _record_losses(self, losses: list[Any], histories: list[Any]) -> None:
        for loss in losses:
            self.training.loss(loss)
        if len(histories) == 1:
            *earlier, last = sys.modules["numpy"].asarray(histories[0]).reshape(-1)
            for loss in earlier:
                self.training.loss(loss)
                self.training.unseen_step()
            histories = [last]
        for history in histories:
            self.training.loss(history)

    def _enter(self, weights: list[Any]) -> None:
        if not weights or (self._entered and all([a is b for a, b in zip(weights, self._entered)])):
            return  # the same weights again: gradients are being accumulated
        key = _structure(weights)
        if self._entered and not self._has_updates:
            if key in self._known:
                self._end(weights)
            else:
                self.training.unseen_step()
        if key not in self._known:
            self._known.add(key)
            self.training.initial([Held(array) for array in weights])
        self._entered = weights

    def _end(self, weights: list[Any]) -> None:
        self._entered, self._held = [], [Held(array) for array in weights]
        self.training.step(_structure(weights), self._held)

    def end_last(self) -> None:
        """End the step of the last gradient, if no update showed its end."""
        if self._entered and not self._has_updates:
            self._entered = []
            self.training.unseen_step()


def _structure(weights: list[Any]) -> Any:
    return tuple([(getattr(array, "dtype", None), getattr(array, "shape", ())) for array in weights])
