"""Notice the tasks of pools: where each begins and ends, in a worker process or in a thread.

Which worker takes a task is chance, so what a task trains is a training of its own. It is whole on disk before the
worker passes the result on, because the parent may end the worker right after it has the last one.
"""

from __future__ import annotations

import threading

from . import threads
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .recorder import Recorder

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
        threads.end_task()
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
