"""Number the calls of tf.functions, to identify an operation in two runs even if operations run in no fixed order."""

from __future__ import annotations

import functools
import importlib
import threading

from .... import wire
from .. import in_threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Call:
    """The n-th outermost call of a thread. ``alone`` is true as long as no other thread is inside a call as well."""

    def __init__(self, thread: str, number: int) -> None:
        self.thread, self.number = thread, number
        self.alone = True

    @property
    def name(self) -> str:
        """The unique name of this call."""
        return str(self.number) if self.thread == wire.MAIN_THREAD else f"{self.thread}.{self.number}"


class Calls:
    """Counts the outermost calls of each thread.

    The operations of a function run in TensorFlow's own threads. If two threads of the script are inside functions at
    the same time, an operation cannot be assigned to one of them.
    """

    def __init__(self) -> None:
        self._local = threading.local()
        self._counts: dict[str, int] = {}
        self._running: list[Call] = []
        self._latest = Call(wire.MAIN_THREAD, 0)
        self._seen: dict[tuple[str, str, str], int] = {}
        self._eager: Any = importlib.import_module("tensorflow.python.eager.context").executing_eagerly

    @property
    def current(self) -> Call:
        """The running call, or else the last one, after which its gradient runs."""
        running = self._running
        return running[-1] if running else self._latest

    def key(self, graph: str, node: str) -> str:
        """Return a unique name for this run of a node."""
        call = self.current.name
        occurrence = self._seen.get((call, graph, node), 0)
        self._seen[call, graph, node] = occurrence + 1
        return f"{call}/{graph}/{node}/{occurrence}"

    def watch(self, function: Any, around: Callable[[Call, Any], Callable[[], None]]) -> None:
        """Count the calls of this class of functions, and call ``around(call, arguments)`` before each.

        It returns a function to be called after the call. Neither may raise.
        """
        call = function.__call__

        @functools.wraps(call)
        def __call__(function_: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self._local, "inside", False) or not self._eager():
                return call(function_, *args, **kwargs)
            self._local.inside = True
            started = self._begin()
            try:
                after = around(started, (args, kwargs))
                result = call(function_, *args, **kwargs)
                after()
                return result
            finally:
                self._local.inside = False
                self._latest = started
                self._running.remove(started)

        function.__call__ = __call__

    def _begin(self) -> Call:
        thread = in_threads.name()
        number = self._counts[thread] = self._counts.get(thread, 0) + 1
        started = Call(thread, number)
        if not self._running:
            self._seen = {}
        self._running.append(started)
        if len(self._running) > 1:
            for one in list(self._running):
                one.alone = False
        return started
