"""The recorder of one process: what the adapters share, and what happens when the process ends or forks."""

from __future__ import annotations

import atexit
import os
import sys

from ... import wire
from . import writers
from .log import Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Training(Protocol):
        """Counts steps; see training/steps.py."""

        lane: int
        owns_states: bool
        steps: int

        @property
        def under_way(self) -> bool:
            """Whether anything was trained."""

        def current_step(self, after_loss: bool) -> int:
            """Return the number of the current step."""


class Recorder:
    """Holds the sink and the recorded stages of this process, and the callbacks for its steps and its end."""

    def __init__(self, directory: str) -> None:
        self.sink = Sink(directory)
        self.stages = frozenset((os.environ.get(wire.ENV_STAGES) or ",".join(wire.DEFAULT_STAGES)).split(","))
        self.until = int(os.environ.get(wire.ENV_UNTIL) or 0)
        self.trainings: list[Training] = []
        self.lane = 0
        self._lanes = 0
        self._finishers: list[Callable[[], None]] = []
        self._forgetters: list[Callable[[], None]] = []
        self._forget_task: list[Callable[[], None]] = []
        self._stepped: list[Callable[[int], None]] = []
        self._called: list[Callable[[int], None]] = []
        self.calls = 0
        self._threads_watched = False

    def at_end(self, finish: Callable[[], None], forget: Callable[[], None], *, tasks: bool = True) -> None:
        """Register an adapter: ``finish`` before the process ends, ``forget`` in a forked child.

        With ``tasks``, both also at the end of a task of a pool in which something was trained.
        """
        self.before_bye(finish, forget)
        if tasks:
            self._forget_task.append(forget)
        if not self._threads_watched:
            self._threads_watched = True
            self._finish_before_joining_threads()

    def before_bye(self, finish: Callable[[], None], forget: Callable[[], None]) -> None:
        """Register the same for an adapter whose ``finish`` can wait until all threads were joined."""
        self._finishers.append(finish)
        self._forgetters.append(forget)
        # Registered after the framework's own functions, so atexit runs it before the framework's teardown.
        atexit.register(self.finish)

    def at_step(self, observe: Callable[[int], None]) -> None:
        """Call ``observe(steps)`` whenever a step ends, before it is written."""
        self._stepped.append(observe)

    def stepped(self, steps: int) -> None:
        """Call the observers with the number of steps that have ended."""
        for observe in self._stepped:
            observe(steps)

    def at_call(self, observe: Callable[[int], None]) -> None:
        """Call ``observe(calls)`` whenever a call of a model ends in a process that trained nothing so far."""
        self._called.append(observe)

    def called(self, calls: int) -> None:
        """Call the observers with the number of calls that have ended."""
        self.calls = calls
        for observe in self._called:
            observe(calls)

    def current_step(self, after_loss: bool) -> int | None:
        """Return the number of the current training step, or None if no framework is loaded that could train."""
        return max([training.current_step(after_loss) for training in self.trainings], default=None)

    def finish(self) -> None:
        """Call ``finish`` of every adapter."""
        for finish in self._finishers:
            self.sink.guarded("finish", finish)

    def new_lane(self) -> int:
        """Return the number of the next training that has steps of its own in this process."""
        self._lanes += 1
        return self._lanes

    def begin_task(self) -> None:
        """Give what is trained from now on a lane of its own: this process is a worker of a pool."""
        self._start_over(self.new_lane())

    def _start_over(self, lane: int) -> None:
        self.trainings[:] = [training for training in self.trainings if training.owns_states]
        self.lane = lane
        for training in self.trainings:
            training.lane = lane

    def end_task(self) -> None:
        """Write the end of what was trained in a task: the parent may end this worker once it has the results."""
        if any([training.under_way for training in self.trainings]):
            self.finish()
            self.bye("task")
            for forget in self._forget_task:
                self.sink.guarded("task", forget)
            self.begin_task()

    def bye(self, how: str) -> None:
        """Write the line that marks an orderly end."""
        if self.sink.started:
            self.sink.bye(how, writers.started())

    def _finish_before_joining_threads(self) -> None:
        # A script that hangs at exit mostly hangs while threads are joined, which is before atexit. So write earlier.
        register = getattr(sys.modules.get("threading"), "_register_atexit", None)
        if register is not None:
            self.sink.guarded("finish", lambda: register(self.finish))

    def after_fork(self) -> None:
        """Give a forked child its own event log, and forget the training of the parent."""
        self.sink.reopen()
        writers.forget()
        self._lanes = 0
        self._start_over(0)
        for forget in self._forgetters:
            self.sink.guarded("fork", forget)
