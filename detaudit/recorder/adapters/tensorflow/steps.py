"""Keep apart what the threads of a process train, each with steps and, for its graphs, a ring buffer of its own.

Graphs are traced in the thread that trains with them, as by ``Model.fit``. A graph that was traced in another thread
belongs to the training of that thread.
"""

from __future__ import annotations

import weakref

from ...process import threads
from .graphs import Rings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ...training.steps import Training


class Steps:
    """What one thread, or one task of a pool of threads, trains."""

    def __init__(self, training: Training, rings: Rings) -> None:
        self.training, self.rings = training, rings
        self.eager: list[Any] = []
        """The variables of the last gradient in eager code, whose step has not ended."""
        self.noted: list[Any] = []
        """The variables of gradients in the graph that is being traced."""
        self.latest: tuple[int, list[Any]] = (0, [])
        """The number and the variables of the last set that a graph trains."""
        self._sets = 0
        self._of_function: weakref.WeakKeyDictionary[Any, tuple[int, list[Any]]] = weakref.WeakKeyDictionary()

    def end_eager(self) -> None:
        """End the step of the last gradient in eager code."""
        with self.training.lock:
            if self.eager and self.training.pending:
                self.training.step(("eager", *[id(v) for v in self.eager]), self.eager)

    def end_traced(self, function: Any) -> tuple[int, list[Any]]:
        """Return what an outermost tf.function trains, after a call that may have traced it."""
        noted, self.noted = self.noted, []
        known = self._of_function.get(function, (0, []))[1]
        if noted and (len(noted) != len(known) or any(a is not b for a, b in zip(noted, known))):
            self._sets += 1
            self._of_function[function] = self.latest = (self._sets, noted)
        return self._of_function.get(function, self.latest)

    def trains(self, function: Any) -> bool:
        """Return whether a step was recorded in a call of this tf.function."""
        return function in self._of_function

    def keep(self, function: Any, weights: tuple[int, list[Any]]) -> None:
        """Keep what a tf.function trains that calls others, which were traced before."""
        self._of_function.setdefault(function, weights)


class ThreadSteps(threads.PerThread):
    """The steps of all threads. What the main thread trains, and threads of TensorFlow, is one training."""

    main: Steps
    beside: list[Steps]

    def __init__(self, training: Training, rings: Callable[[], Rings]) -> None:
        self._rings = rings
        self._owners: weakref.WeakKeyDictionary[Any, Steps] = weakref.WeakKeyDictionary()
        super().__init__(Steps(training, rings()), lambda: Steps(training.beside(), rings()))

    def forget(self, functions: bool) -> None:
        """Start over, and if ``functions``, forget those too: a forked child traces its own."""
        self.main.noted, self.main.eager = [], []
        if functions:
            self._owners = weakref.WeakKeyDictionary()
        self.restart(Steps(self.main.training, self._rings()) if functions else self.main)

    def now(self) -> Steps:
        """Return the steps of this thread."""
        found: Steps = super().now()
        return found

    def of_function(self, function: Any) -> Steps:
        """Return the steps in which a tf.function was traced."""
        return self._owners.get(function) or self.now()

    def traced(self, function: Any) -> None:
        """Notice in which thread a tf.function was traced, if it trains."""
        now = self.now()
        if now.noted:
            self._owners[function] = now

    def used_by(self, functions: Iterable[Any]) -> list[Any]:
        """Return the recorder's variables that these concrete functions use."""
        return [variable for steps in (self.main, *self.beside) for variable in steps.rings.used_by(functions)]
