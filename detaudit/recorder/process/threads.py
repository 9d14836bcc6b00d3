"""Name threads so that a name is the same in every run; a task of a pool keeps its name on any thread of the pool."""

from __future__ import annotations

import _thread
import sys

from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .recorder import Recorder

NUMBER = "_detaudit_number"
"""The attribute that identifies a future: the name of the thread or task that made it, and a count, from 1."""

_FRAMEWORKS = frozenset(("jax", "keras", "tensorflow", "torch"))

_tasks: dict[int, str | None] = {}
_here = _thread._local()
_made: dict[str, int] = {}


def name() -> str | None:
    """Return the name of the running thread or task: ``""`` for the main thread, None if it may differ between runs."""
    ident = _thread.get_ident()
    if ident in _tasks:
        return _tasks[ident]
    threading: Any = sys.modules.get("threading")
    if threading is None:
        return ""
    # current_thread() would create an object for a thread that Python did not start.
    thread = threading._active.get(ident)
    if thread is threading.main_thread():
        return ""
    # A worker of a ThreadPool runs whichever task comes next.
    if thread is None or type(thread).__name__ == "_DummyThread" or type(thread).__module__ == "multiprocessing.dummy":
        return None
    return str(thread.name)


def in_main() -> bool:
    """Return whether this is the main thread, or a process without threads of the script's own."""
    threading: Any = sys.modules.get("threading")
    return threading is None or threading.main_thread().ident == _thread.get_ident()


def in_background() -> bool:
    """Return whether this is a thread that the script started, not the main one nor one of a framework's own."""
    threading: Any = sys.modules.get("threading")
    if threading is None:
        return False
    thread = threading._active.get(_thread.get_ident())
    if thread is None or thread is threading.main_thread():
        return False
    # Each replica of a tf.distribute.MirroredStrategy has a thread.
    kind = type(thread)
    return kind.__name__ != "_DummyThread" and kind.__module__.partition(".")[0] not in _FRAMEWORKS


def ended_tasks() -> int:
    """Return how many tasks of pools this thread has ended: what it does under one number belongs together."""
    return getattr(_here, "ended", 0)


def end_task() -> None:
    """Notice that this thread ended a task."""
    _here.ended = ended_tasks() + 1


class PerThread:
    """One object for the main thread and a framework's own, and one for each other thread or task of a pool.

    ``beside`` are those of the others that have something to record.
    """

    def __init__(self, main: Any, make: Callable[[], Any]) -> None:
        self._make = make
        self.restart(main)

    def restart(self, main: Any) -> None:
        """Forget the objects of other threads than the main one, as in a forked child."""
        self.main = main
        self.beside: list[Any] = []
        self._here = _thread._local()
        threading: Any = sys.modules.get("threading")
        self._of_main = threading.main_thread().ident if threading is not None else None

    def now(self) -> Any:
        """Return the object of this thread."""
        if _thread.get_ident() == self._of_main or not in_background():
            return self.main
        here, task = self._here, ended_tasks()
        if getattr(here, "task", -1) != task:
            here.task, here.found = task, self._make()
        return here.found

    def keep(self, one: Any) -> None:
        """Keep the object of a thread to the end, because it has something to record."""
        if one is not self.main and one not in self.beside:
            self.beside.append(one)


def number_futures(base: Any) -> None:
    """Give each future a NUMBER, by a hook in ``concurrent.futures._base``."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            function(self, *args, **kwargs)
            who = name()
            if who is not None and hasattr(self, "__dict__"):
                _made[who] = _made.get(who, 0) + 1
                self.__dict__[NUMBER] = (who, _made[who])

        return __init__

    replace(base.Future, "__init__", make)


def name_tasks(thread: Any, _: Recorder) -> None:
    """Name the tasks of executors after their futures, by a hook in ``concurrent.futures.thread``."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Any, *args: Any) -> None:
            number = getattr(self.future, NUMBER, None)
            ident = _thread.get_ident()
            _tasks[ident] = None if number is None else "task %d %s" % (number[1], number[0])
            try:
                function(self, *args)
            finally:
                _tasks.pop(ident, None)
                end_task()
                self = None  # the traceback of a failed task holds this frame, which must not keep the task alive

        return run

    replace(thread._WorkItem, "run", make)
