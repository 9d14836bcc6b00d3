"""Results that are taken as they complete, and queues."""

from __future__ import annotations

import collections
import sys

from ..process import frames, threads
from ..process.replace import replace
from . import seeds

# Record the order in which a line of user code gets results that it takes as they complete.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from ..process.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType
    from typing import Any, Optional

    from ..process.log import Sink
    from ..process.recorder import Recorder

    Numbers = dict[int, tuple[int, Optional[tuple[str, int]]]]
    """By the id of a future: its index among the futures that were passed, and its number (see threads.NUMBER)."""

_MOST_COMPLETED = 2**12
"""Results whose order is recorded at most, and lines for which an order is kept."""

_EACH = 2**8
"""Up to this number of results, the order is written after each one; from n times this number on, after every n + 1."""

_BARS = ("tqdm", "rich")
"""Libraries that show the progress of an iteration, and pass its items on."""

_IN_ORDER = (list, tuple, dict)
_KNOWN = (*_IN_ORDER, set, frozenset)


class CompletionOrder:
    """The order of the results so far, at one line in one thread: a rolling digest.

    It is written after each of the first results, since a run may be stopped as soon as it differs, and after some of
    the later ones.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        from ..training import digest

        self._small, self._write = digest.small, write
        self._count, self._written, self._order = 0, 0, 0

    def add(self, result: str) -> None:
        """Add the name of the next result, up to a maximum."""
        if self._count < _MOST_COMPLETED:
            self._count += 1
            self._order = self._small(b"%d " % self._order + result.encode("utf-8", "backslashreplace"))
            if self._count - self._written > self._written // _EACH:
                self.write()

    def write(self) -> None:
        """Write the count and the digest, unless they were written before."""
        if self._written != self._count:
            self._written = self._count
            self._write("%d/%x" % (self._count, self._order))


_orders: dict[tuple[str, tuple[str, int], str], CompletionOrder | None] = {}
_prepared: list[Recorder] = []


def at_line(sink: Sink, what: str, frame: FrameType | None, through: Iterable[str]) -> CompletionOrder | None:
    """Return the order of the results that user code in this frame gets from ``what``, or None if none is kept."""
    user_frame, thread = frames.user_frame(frame, tuple(through)), threads.name()
    if user_frame is None or thread is None:
        return None
    location = frames.location(user_frame)
    key = (what, location, thread)
    if key not in _orders and len(_orders) < _MOST_COMPLETED:

        def write(state: str) -> None:
            seeds.write(sink, "completion-order", what, location, f"{thread}:{state}")

        _orders[key] = CompletionOrder(write) if seeds.has_room(what, location) else None
    return _orders.get(key)


def prepare(recorder: Recorder) -> None:
    """Write all orders at the end; a forked child starts with none."""
    if recorder in _prepared:
        return
    _prepared.append(recorder)

    def finish() -> None:
        for order in list(_orders.values()):
            if order is not None:
                order.write()

    recorder.before_bye(finish, _orders.clear)


def _numbered(fs: Any, numbers: Numbers) -> Any:
    """Return an iterable of the same futures, which has filled ``numbers`` once it is exhausted."""

    def add(future: Any) -> None:
        numbers[id(future)] = (len(numbers), getattr(future, threads.NUMBER, None))

    def numbering() -> Iterator[Any]:
        for future in fs:
            add(future)
            yield future

    if type(fs) not in _KNOWN:
        return numbering()
    for future in fs:
        add(future)
    return fs


def _places(numbers: Numbers, in_order: bool) -> dict[int, int]:
    """Return the index of each future in the order of creation, or, if that is unknown, in the order as passed."""
    made = [(number, key) for key, (_, number) in numbers.items() if number is not None]
    if len(made) == len(numbers):
        return {key: index for index, (_, key) in enumerate(sorted(made))}
    return {key: index for key, (index, _) in numbers.items()} if in_order else {}


def _taking(sink: Sink, order: CompletionOrder, numbers: Numbers, in_order: bool) -> Callable[[Any], Any]:
    """Return a function that adds a future to the order and returns it, without keeping a reference."""
    places: dict[int, int] = {}
    taken = [0]

    def add(key: int) -> None:
        if not taken[0]:
            places.update(_places(numbers, in_order))
        taken[0] += 1
        if key in places:
            order.add("%d %d" % (taken[0], places[key]))

    def take(future: Any) -> Any:
        key = id(future)
        sink.guarded("as_completed", lambda: add(key))
        return future

    return take


def _as_completed(function: Callable[..., Any], sink: Sink) -> Callable[..., Any]:
    def find(frame: FrameType | None) -> CompletionOrder | None:
        orders: list[CompletionOrder | None] = []
        sink.guarded(
            "as_completed", lambda: orders.append(at_line(sink, "concurrent.futures.as_completed", frame, _BARS))
        )
        return orders[0] if orders else None

    def as_completed(fs: Any, timeout: Any = None) -> Iterator[Any]:
        numbers: Numbers = {}
        in_order = not isinstance(fs, (set, frozenset))
        order = find(sys._getframe().f_back)
        if order is None:
            futures = function(fs, timeout)
        else:
            futures = map(_taking(sink, order, numbers, in_order), function(_numbered(fs, numbers), timeout))
        del fs  # like the original, so that a future is freed once the script drops it
        yield from futures

    return as_completed


def _wait(function: Callable[..., Any], sink: Sink) -> Callable[..., Any]:
    def observe(frame: FrameType | None, numbers: Numbers, done: Iterable[Any], in_order: bool) -> None:
        order = at_line(sink, "concurrent.futures.wait", frame, ())
        places = _places(numbers, in_order)
        taken = sorted([places.get(id(future), -1) for future in done])
        if order is not None and taken and taken[0] >= 0:
            order.add(" ".join(map(str, taken)))

    def wait(fs: Any, timeout: Any = None, return_when: Any = "ALL_COMPLETED") -> Any:
        if return_when != "FIRST_COMPLETED":
            return function(fs, timeout, return_when)
        numbers: Numbers = {}
        in_order = not isinstance(fs, (set, frozenset))
        result = function(_numbered(fs, numbers), timeout, return_when)
        frame = sys._getframe().f_back
        sink.guarded("wait", lambda: observe(frame, numbers, result[0], in_order))
        return result

    return wait


def watch_futures(base: Any, recorder: Recorder) -> None:
    """Watch ``concurrent.futures._base``, before the package imports its functions from there."""
    prepare(recorder)
    sink = recorder.sink
    threads.number_futures(base)
    replace(base, "as_completed", lambda function: _as_completed(function, sink))
    replace(base, "wait", lambda function: _wait(function, sink))


def watch_pool(pool: Any, recorder: Recorder) -> None:
    """Watch the results of Pool.imap_unordered in ``multiprocessing.pool``."""
    prepare(recorder)
    sink = recorder.sink
    orders = "_detaudit_order"

    def creating(function: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            frame = sys._getframe().f_back

            def find() -> None:
                through = ("multiprocessing", *_BARS)
                self.__dict__[orders] = at_line(sink, "multiprocessing.Pool.imap_unordered", frame, through)

            sink.guarded("imap_unordered", find)
            function(self, *args, **kwargs)

        return __init__

    def completing(function: Callable[..., Any]) -> Callable[..., Any]:
        def _set(self: Any, i: Any, obj: Any) -> None:
            order = self.__dict__.get(orders)
            if order is not None:
                sink.guarded("imap_unordered", lambda: order.add(str(i)))
            function(self, i, obj)

        return _set

    replace(pool.IMapUnorderedIterator, "__init__", creating)
    replace(pool.IMapUnorderedIterator, "_set", completing)


def watch_loaders(dataloader: Any, recorder: Recorder) -> None:
    """Watch ``torch.utils.data.dataloader`` for a DataLoader that returns batches as workers complete them."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            function(self, *args, **kwargs)
            if getattr(self, "in_order", True) is False and self.num_workers:
                frame = sys._getframe().f_back
                seeds.observe_call(recorder.sink, "DataLoader", lambda: observe(frame))

        return __init__

    def observe(frame: FrameType | None) -> None:
        user_frame = frames.user_frame(frame)
        if user_frame is not None and seeds.has_room("DataLoader", frames.location(user_frame)):
            seeds.write(
                recorder.sink, "completion-order-option", "DataLoader(in_order=False)", frames.location(user_frame)
            )

    replace(dataloader.DataLoader, "__init__", make)


# Record which threads put items into a queue, in the order in which a line of user code gets them.


_PUTTERS = "_detaudit_putters"
_MOST = 2**12


class _Putters:
    """The names of the threads that put the items of a queue, None for a thread whose name may differ between runs."""

    def __init__(self) -> None:
        self.waiting: collections.deque[str | None] = collections.deque()
        self.left = _MOST

    def put(self, size: int) -> None:
        if len(self.waiting) + 1 == size:
            self.waiting.append(threads.name())
        else:
            self._give_up()  # other code fills or empties the queue too

    def taken(self, size: int) -> str | None:
        if len(self.waiting) != size + 1:
            self._give_up()
            return None
        self.left -= 1
        return self.waiting.popleft()

    def _give_up(self) -> None:
        self.left = 0
        self.waiting.clear()


def watch(queue: Any, recorder: Recorder) -> None:
    """Watch the class Queue of ``queue``. Subclasses that reorder items have their own _put and _get, without hooks."""
    prepare(recorder)
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
                frame = sys._getframe().f_back
                sink.guarded("Queue.get", lambda: observe(frame, putters, self._qsize()))
            return item

        return _get

    def observe(frame: FrameType | None, putters: _Putters, size: int) -> None:
        who = putters.taken(size)
        order = None if who is None else at_line(sink, "queue.Queue.get", frame, ("queue",))
        if order is not None:
            order.add(who or "")

    replace(queue.Queue, "_put", putting)
    replace(queue.Queue, "_get", getting)
