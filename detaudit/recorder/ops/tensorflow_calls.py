"""Which call of a tf.function is running, so that what runs in it can be told in two runs whatever the order."""

from __future__ import annotations

import functools
import importlib
import itertools
import threading
from typing import NamedTuple

from ... import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Call(NamedTuple):
    """The n-th outermost call of a thread."""

    thread: int
    number: int


class Calls:
    """Counts the outermost calls of each thread. Threads count by first appearance, the main one is 0.

    What runs inside a function runs in threads of TensorFlow's own: where two threads of the script are inside
    functions at once, it counts as the later call's.
    """

    def __init__(self) -> None:
        self._local = threading.local()
        self._threads = itertools.count(1)
        self._running: list[Call] = []
        self._latest = Call(0, 0)
        self._seen: dict[tuple[Call, str, str], int] = {}
        self._eager: Any = importlib.import_module("tensorflow.python.eager.context").executing_eagerly

    @property
    def current(self) -> Call:
        """The call that is running, else the last one: a gradient runs after it."""
        running = self._running
        return running[-1] if running else self._latest

    def thread(self) -> int:
        """Return the number of this thread."""
        number: int | None = getattr(self._local, "number", None)
        if number is None:
            main = threading.current_thread() is threading.main_thread()
            number = self._local.number = 0 if main else next(self._threads)
        return number

    def key(self, graph: str, node: str) -> str:
        """Return what tells this run of a node from all others."""
        call = self.current
        occurrence = self._seen.get((call, graph, node), 0)
        self._seen[call, graph, node] = occurrence + 1
        number = f"{call.thread}.{call.number}" if call.thread else str(call.number)
        return f"{number}/{graph}/{node}/{occurrence}"

    def watch(self, function: Any, begin: Callable[[], None]) -> None:
        """Count the calls of this class of functions; ``begin``, which never raises, comes before each."""
        call = function.__call__

        @functools.wraps(call)
        def __call__(function_: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self._local, "inside", False) or not self._eager():
                return call(function_, *args, **kwargs)
            self._local.inside = True
            started = self._begin()
            try:
                begin()
                return call(function_, *args, **kwargs)
            finally:
                self._local.inside = False
                self._latest = started
                self._running.remove(started)

        function.__call__ = __call__

    def _begin(self) -> Call:
        self._local.count = getattr(self._local, "count", 0) + 1
        started = Call(self.thread(), self._local.count)
        if not self._running:
            self._seen = {}
        self._running.append(started)
        return started


def named(thread: int) -> str:
    """Return what a thread is called: its number is that of its first appearance."""
    return wire.MAIN_THREAD if thread == 0 else f"thread-{thread}"
