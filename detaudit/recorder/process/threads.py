"""Names of threads that repeat in every run, and tasks of pools."""

from __future__ import annotations

import _thread
import functools
import sys
import threading

from ... import wire
from .replace import replace

# Name threads so that a name is the same in every run; a task of a pool keeps its name on any thread of the pool.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .recorder import Recorder


NUMBER = "_detaudit_number"
"""The attribute that identifies a future: the name of the thread or task that made it, and a count, from 1."""

_tasks: dict[int, str | None] = {}
_here = _thread._local()
_made: dict[str, int] = {}


def running() -> Any:
    """Return the object of the running thread, None if Python did not start it."""
    threading: Any = sys.modules.get("threading")
    # current_thread() would create an object for such a thread.
    thread = threading._active.get(_thread.get_ident()) if threading is not None else None
    return None if type(thread).__name__ == "_DummyThread" else thread


def name() -> str | None:
    """Return the name of the running thread or task: ``""`` for the main thread, None if it may differ between runs."""
    ident = _thread.get_ident()
    if ident in _tasks:
        return _tasks[ident]
    if in_main():
        return ""
    thread = running()
    # A worker of a ThreadPool runs whichever task comes next.
    if thread is None or type(thread).__module__ == "multiprocessing.dummy":
        return None
    return str(thread.name)


def in_main() -> bool:
    """Return whether this is the main thread, or a process without threads of the script's own."""
    threading: Any = sys.modules.get("threading")
    return threading is None or threading.main_thread().ident == _thread.get_ident()


def in_background() -> bool:
    """Return whether this is a thread that the script started, not the main one nor one of a framework's own."""
    thread = None if in_main() else running()
    # Each replica of a tf.distribute.MirroredStrategy has a thread.
    return thread is not None and type(thread).__module__.partition(".")[0] not in wire.FRAMEWORKS


def ended_tasks() -> int:
    """Return how many tasks of pools this thread has ended: what it does under one number belongs together."""
    return getattr(_here, "ended", 0)


def end_task() -> None:
    """Notice that this thread ended a task."""
    _here.ended = ended_tasks() + 1


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


# Notice the tasks of pools: where each begins and ends, in a worker process or in a thread.
#
# Which worker takes a task is chance, so what a task trains is a training of its own. It is whole on disk before the
# worker passes the result on, because the parent may end the worker right after it has the last one.


_depth = [0]
"""How many tasks the main thread of a worker process is in: tasks in a task are no trainings of their own."""

_working = [False]
"""Whether this process is a worker of a pool."""


class _Results:
    """The queue of a worker's results, which calls ``notice`` before each of them is passed on."""

    def __init__(self, queue: Any, notice: Callable[[], None]) -> None:
        self._queue, self._notice = queue, notice

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def put(self, *args: Any, **kwargs: Any) -> Any:
        """Put a result into the queue."""
        self._notice()
        return self._queue.put(*args, **kwargs)


def _in_worker() -> bool:
    return _working[0] and threading.current_thread() is threading.main_thread()


def _end(recorder: Recorder) -> None:
    if not _in_worker():
        end_task()
    elif _depth[0] == 0:
        recorder.sink.guarded("task", recorder.end_task)


def _each(function: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    """Return a function that takes each of its calls for a task: a worker may get several tasks at once."""

    def call(*args: Any, **kwargs: Any) -> Any:
        _depth[0] += _in_worker()
        try:
            return function(*args, **kwargs)
        finally:
            _depth[0] -= _in_worker()
            _end(recorder)

    return call


def _watch_worker(recorder: Recorder, module: Any, name: str) -> None:
    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def worker(tasks: Any, results: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.current_thread() is threading.main_thread():
                _working[0] = True
                recorder.sink.guarded("task", recorder.begin_task)
            return function(tasks, _Results(results, lambda: _end(recorder)), *args, **kwargs)

        return worker

    replace(module, name, make)


def watch_pool(pool: Any, recorder: Recorder) -> None:
    """Watch the workers of ``multiprocessing.pool``, processes and threads."""
    _watch_worker(recorder, pool, "worker")
    for name in ("mapstar", "starmapstar"):
        replace(pool, name, lambda function: lambda args: function((_each(args[0], recorder), *args[1:])))


def watch_executor(process: Any, recorder: Recorder) -> None:
    """Watch the workers of ``concurrent.futures.process``, and of loky, which has the same."""
    _watch_worker(recorder, process, "_process_worker")
    if hasattr(process, "_process_chunk"):
        replace(process, "_process_chunk", lambda function: lambda fn, chunk: function(_each(fn, recorder), chunk))


def watch_joblib(parallel: Any, recorder: Recorder) -> None:
    """Watch the batches of ``joblib.parallel``."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def __call__(batch: Any) -> Any:
            items = batch.items
            batch.items = [(_each(item[0], recorder), *item[1:]) for item in items]
            try:
                return function(batch)
            finally:
                batch.items = items

        return __call__

    replace(parallel.BatchedCalls, "__call__", make)


# Name the threads of Python, and hook their start for a framework that keeps its state per thread.


def name_of_lane() -> str:
    """Return the name of this thread, or of its task if it belongs to a pool, whose threads take tasks in any order."""
    known = name()
    return wire.MAIN_THREAD if known == "" else (known or threading.current_thread().name).strip()


def enter_in_threads(enter: Callable[[], Callable[[], None] | None]) -> None:
    """Call ``enter()`` at the start of each new thread, and what it returned at its end. ``enter`` must not raise."""
    thread = threading.Thread
    run: Any = thread._bootstrap_inner  # type: ignore[attr-defined]

    @functools.wraps(run)
    def _bootstrap_inner(self: Any) -> None:
        leave = enter()
        try:
            run(self)
        finally:
            if leave is not None:
                leave()

    thread._bootstrap_inner = _bootstrap_inner  # type: ignore[attr-defined]
