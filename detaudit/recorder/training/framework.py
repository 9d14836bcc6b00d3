"""What every framework has in common: a training for each thread, with a lane of its own; forks, tasks and the end."""

from __future__ import annotations

import _thread
import contextlib
import os
import threading
from typing import Generic, TypeVar

from ..process import threads
from ..process.guard import Guard
from .steps import Training

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any, ClassVar

    from ..process.recorder import Recorder
    from .digest import FrameworkReader


class Steps:
    """What one thread, or one task of a pool of threads, trains: the step that it is in."""

    def __init__(self, training: Training) -> None:
        self.training = training


S = TypeVar("S", bound=Steps)


class Framework(Generic[S]):
    """One framework in one process: its hooks pass what they see on to the steps of the thread that they are called in.

    What the main thread trains, and threads of the framework's own, is one training. A subclass fills in ``install``,
    and what differs from the default of ``steps``, ``end_open_step``, ``forget`` and ``undisturbed``.
    """

    name: str
    """What event logs call it."""

    training_type: ClassVar[type[Training]] = Training

    def __init__(self, recorder: Recorder, reader: FrameworkReader) -> None:
        self.recorder, self.sink = recorder, recorder.sink
        self.training = self.training_type(self.name, recorder, reader)
        self.main = self.steps(self.training)
        self._pid = os.getpid()
        self._restart()
        recorder.at_end(self.finish, self._forget)

    @classmethod
    def start(cls, module: Any, recorder: Recorder) -> None:
        """Record what is trained with a module that was just imported."""
        recorder.sink.write({"k": "framework", "name": cls.name, "version": str(module.__version__)})
        cls(module, recorder).install(module)  # type: ignore[arg-type]

    def install(self, module: Any) -> None:
        """Install hooks of the losses, the gradients and the updates of the framework, each with a ``guard``."""
        raise NotImplementedError

    def steps(self, training: Training) -> S:
        """Return the steps of a thread that begins to train."""
        return Steps(training)  # type: ignore[return-value]

    def end_open_step(self, steps: S) -> None:
        """End a step whose end no hook noticed: nothing is trained any more. The main thread's is the last."""

    def forget(self, forked: bool) -> None:
        """Start over with ``main``: in a forked child, or after a task of a pool, which leaves all objects alive."""
        self.main = self.steps(self.training)

    def undisturbed(self) -> AbstractContextManager[object]:
        """Return the context in which tensors can be read, wherever the process ends."""
        return contextlib.nullcontext()

    def guard(self, where: str) -> Guard:
        """Return a context for what a hook does: its failure is recorded, and never reaches the script."""
        return Guard(self.sink.trouble, where)

    @property
    def now(self) -> S:
        """The steps of this thread, or of the task that it is in."""
        if _thread.get_ident() == self._of_main or not threads.in_background():
            return self.main
        here, task = self._here, threads.ended_tasks()
        if getattr(here, "task", -1) != task:
            here.task, here.own = task, self.steps(self.training.for_thread())
        own: S = here.own
        return own

    @property
    def kept(self) -> S:
        """The steps of this thread, which has something to record: they are kept to the end."""
        now = self.now
        self.keep(now)
        return now

    @property
    def every(self) -> tuple[S, ...]:
        """The steps of all threads that have something to record, those of the main thread first."""
        return self.main, *self.others

    def keep(self, steps: S) -> None:
        """Keep the steps of a thread to the end."""
        if steps is not self.main and steps not in self.others:
            self.others.append(steps)

    def finish(self) -> None:
        """Write the ends of the trainings of all threads, and what models hold."""
        with self.undisturbed():
            with self.training.lock:
                for steps in (*self.others, self.main):
                    self.end_open_step(steps)
            self.training.finish_all([steps.training for steps in self.others])

    def _forget(self) -> None:
        forked, self._pid = self._pid != os.getpid(), os.getpid()
        self.training.forget()
        self.forget(forked)
        self._restart()

    def _restart(self) -> None:
        self.others: list[S] = []
        self._here = _thread._local()
        self._of_main = threading.main_thread().ident
