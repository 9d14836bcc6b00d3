"""Record which threads put items into a queue, in the order in which a line of user code gets them."""

from __future__ import annotations

import collections
import sys

from ..process import threads
from ..process.replace import replace
from . import completion_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from ..process.recorder import Recorder

_PUTTERS = "_detaudit_putters"
_MOST = 2**12


class _Putters:
    """The names of the threads that put the items of a queue, None for a thread whose name may differ between runs."""

    def __init__(self) -> None:
        self.waiting: collections.deque[str | None] = collections.deque()
        self.left = _MOST

    def put(self, held: int) -> None:
        if len(self.waiting) + 1 == held:
            self.waiting.append(threads.name())
        else:
            self._give_up()  # other code fills or empties the queue too

    def taken(self, held: int) -> str | None:
        if len(self.waiting) != held + 1:
            self._give_up()
            return None
        self.left -= 1
        return self.waiting.popleft()

    def _give_up(self) -> None:
        self.left = 0
        self.waiting.clear()


def watch(queue: Any, recorder: Recorder) -> None:
    """Watch the class Queue of ``queue``. Subclasses that reorder items have their own _put and _get, without hooks."""
    completion_order.prepare(recorder)
    sink = recorder.sink

    def putting(function: Callable[..., Any]) -> Callable[..., Any]:
        def _put(self: Any, item: Any) -> None:
            function(self, item)
            putters = self.__dict__.get(_PUTTERS)
            if putters is None:
                putters = self.__dict__[_PUTTERS] = _Putters()
            if putters.left:
                try:  # not by sink.guarded: a signal handler that puts an item too waits for this one for ever
                    putters.put(self._qsize())
                except Exception as error:
                    sink.trouble("Queue.put", error)

        return _put

    def getting(function: Callable[..., Any]) -> Callable[..., Any]:
        def _get(self: Any) -> Any:
            item = function(self)
            putters = self.__dict__.get(_PUTTERS)
            if putters is not None and putters.left:
                frame = sys._getframe(1)
                sink.guarded("Queue.get", lambda: observe(frame, putters, self._qsize()))
            return item

        return _get

    def observe(frame: FrameType, putters: _Putters, held: int) -> None:
        who = putters.taken(held)
        order = None if who is None else completion_order.at_line(sink, "queue.Queue.get", frame, ("queue",))
        if order is not None:
            order.add(who or "")

    replace(queue.Queue, "_put", putting)
    replace(queue.Queue, "_get", getting)
