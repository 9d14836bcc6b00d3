"""Who a thread is, by a name that is the same in every run: a task of a pool is the same whichever thread runs it."""

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
"""The attribute of a future that tells it from the others: the name of who made it, and the how-manieth it was."""

_tasks: dict[int, str | None] = {}
_made: dict[str, int] = {}


def name() -> str | None:
    """Return the name of who runs, ``""`` for the main thread, None where it may be another one in the next run."""
    ident = _thread.get_ident()
    if ident in _tasks:
        return _tasks[ident]
    threading: Any = sys.modules.get("threading")
    if threading is None:
        return ""
    # Not current_thread(), which makes an object for a thread that is not Python's own.
    thread = threading._active.get(ident)
    if thread is threading.main_thread():
        return ""
    # A worker of a ThreadPool takes whatever task is next.
    if thread is None or type(thread).__name__ == "_DummyThread" or type(thread).__module__ == "multiprocessing.dummy":
        return None
    return str(thread.name)


def number_futures(base: Any) -> None:
    """Have each future know who made it, and the how-manieth it was, from ``concurrent.futures._base`` on."""

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
    """Have what an executor runs in a thread of ``concurrent.futures.thread`` go by the number of its future."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Any, *args: Any) -> None:
            number = getattr(self.future, NUMBER, None)
            ident = _thread.get_ident()
            _tasks[ident] = None if number is None else "task %d %s" % (number[1], number[0])
            try:
                function(self, *args)
            finally:
                _tasks.pop(ident, None)
                self = None  # the traceback of an exception of the task, which the task's future has, ends here

        return run

    replace(thread._WorkItem, "run", make)
