"""One process's recorder: what the adapters share, and what happens when the process ends or forks."""

from __future__ import annotations

import atexit
import os
import sys

from ... import wire
from .sink import Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Training(Protocol):
        """What counts steps; see training.py."""

        def under_way(self, after_loss: bool) -> int:
            """Return the number of the step under way."""


class Recorder:
    """The sink and the stages of this process, and those who have something to write before it ends."""

    def __init__(self, directory: str) -> None:
        self.sink = Sink(directory)
        self.stages = frozenset((os.environ.get(wire.ENV_STAGES) or ",".join(wire.DEFAULT_STAGES)).split(","))
        self.trainings: list[Training] = []
        self._finishers: list[Callable[[], None]] = []
        self._forgetters: list[Callable[[], None]] = []
        self._stepped: list[Callable[[int], None]] = []
        self._threads_watched = False

    def at_end(self, finish: Callable[[], None], forget: Callable[[], None]) -> None:
        """Register an adapter: ``finish`` before the process ends, ``forget`` in a forked child."""
        self.before_bye(finish, forget)
        if not self._threads_watched:
            self._threads_watched = True
            self._finish_before_joining_threads()

    def before_bye(self, finish: Callable[[], None], forget: Callable[[], None]) -> None:
        """Register the same of what can wait until the threads were joined."""
        self._finishers.append(finish)
        self._forgetters.append(forget)
        # After the framework's own registrations, hence before its own teardown.
        atexit.register(self.finish)

    def at_step(self, observe: Callable[[int], None]) -> None:
        """Call ``observe(steps)`` whenever a step is done, before it is written."""
        self._stepped.append(observe)

    def stepped(self, steps: int) -> None:
        """Tell those who asked that so many steps are done."""
        for observe in self._stepped:
            observe(steps)

    def step_under_way(self, after_loss: bool) -> int | None:
        """Return the training step under way, None if no framework is there that could train."""
        return max([training.under_way(after_loss) for training in self.trainings], default=None)

    def finish(self) -> None:
        """Let every adapter write what is final."""
        for finish in self._finishers:
            self.sink.guarded("finish", finish)

    def bye(self, how: str) -> None:
        """Write the last line of an orderly end."""
        if self.sink.started:
            self.sink.write({"k": "bye", "how": how})

    def _finish_before_joining_threads(self) -> None:
        # A script that hangs at exit mostly hangs in joining its threads, before atexit: write first.
        register = getattr(sys.modules.get("threading"), "_register_atexit", None)
        if register is not None:
            self.sink.guarded("finish", lambda: register(self.finish))

    def after_fork(self) -> None:
        """In a forked child: a file of its own, and nothing of the parent's training."""
        self.sink.reopen()
        for forget in self._forgetters:
            self.sink.guarded("fork", forget)
