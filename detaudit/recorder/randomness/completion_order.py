"""In which order results come to a line of the user's code that takes them as they are ready."""

from __future__ import annotations

import sys

from ..process import frames, threads
from ..process.replace import replace
from . import seeds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType
    from typing import Any, Optional

    from ..process.recorder import Recorder
    from ..process.sink import Sink

    Numbers = dict[int, tuple[int, Optional[tuple[str, int]]]]
    """What each future is told by, under its id: its place among those that were given, and its own number."""

_MOST = 2**12
_EACH = 2**8
"""Up to so many, each arrival is noted; from n times as many on, one in n + 1."""
_BARS = ("tqdm", "rich")
"""Libraries that hand on what they iterate over, and show how far they are."""

_IN_ORDER = (list, tuple, dict)
_KNOWN = (*_IN_ORDER, set, frozenset)


class Order:
    """What has arrived so far at one line, in one thread: a digest that rolls, noted at each of the first arrivals.

    A run is ended as soon as it differs, so what is noted later than that is never seen; after many, some are left out.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        from ..training import digest

        self._small, self._note = digest.small, note
        self._count, self._noted, self._order = 0, 0, 0

    def add(self, word: str) -> None:
        """Take in the next arrival, up to a bound."""
        if self._count < _MOST:
            self._count += 1
            self._order = self._small(b"%d " % self._order + word.encode("utf-8", "backslashreplace"))
            if self._count - self._noted > self._noted // _EACH:
                self.note()

    def note(self) -> None:
        """Write how it stands, unless that is known."""
        if self._noted != self._count:
            self._noted = self._count
            self._note("%d/%x" % (self._count, self._order))


_orders: dict[tuple[str, tuple[str, int], str], Order | None] = {}
_prepared: list[Recorder] = []


def at_line(sink: Sink, what: str, frame: FrameType | None, through: Iterable[str]) -> Order | None:
    """Return the order of what comes to the user's line in this frame by calling ``what``, None where none is kept."""
    found, who = frames.users_frame(frame, tuple(through)), threads.name()
    if found is None or who is None:
        return None
    place = frames.place(found)
    key = (what, place, who)
    if key not in _orders and len(_orders) < _MOST:

        def note(state: str) -> None:
            seeds.note(sink, "completion-order", what, place, f"{who}:{state}")

        _orders[key] = Order(note) if seeds.room(what, place) else None
    return _orders.get(key)


def prepare(recorder: Recorder) -> None:
    """Write at the end how all orders stand; a forked child begins its own."""
    if recorder in _prepared:
        return
    _prepared.append(recorder)

    def finish() -> None:
        for order in list(_orders.values()):
            if order is not None:
                order.note()

    recorder.before_bye(finish, _orders.clear)


def _numbered(fs: Any, numbers: Numbers) -> Any:
    """Return what gives the same futures once, and has filled ``numbers`` when it has given them all."""

    def keep(future: Any) -> None:
        numbers[id(future)] = (len(numbers), getattr(future, threads.NUMBER, None))

    def giving() -> Iterator[Any]:
        for future in fs:
            keep(future)
            yield future

    if type(fs) not in _KNOWN:
        return giving()
    for future in fs:
        keep(future)
    return fs


def _places(numbers: Numbers, in_order: bool) -> dict[int, int]:
    """Return the place of each future, by the order in which they were made, or given where that is not known."""
    made = [(number, key) for key, (_, number) in numbers.items() if number is not None]
    if len(made) == len(numbers):
        return {key: place for place, (_, key) in enumerate(sorted(made))}
    return {key: place for key, (place, _) in numbers.items()} if in_order else {}


def _taking(sink: Sink, order: Order, numbers: Numbers, in_order: bool) -> Callable[[Any], Any]:
    """Return a function that hands a future on and adds it to the order; it keeps none of them."""
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
    def find(frame: FrameType) -> Order | None:
        found: list[Order | None] = []
        sink.guarded(
            "as_completed", lambda: found.append(at_line(sink, "concurrent.futures.as_completed", frame, _BARS))
        )
        return found[0] if found else None

    def as_completed(fs: Any, timeout: Any = None) -> Iterator[Any]:
        numbers: Numbers = {}
        in_order = not isinstance(fs, (set, frozenset))
        order = find(sys._getframe(1))
        if order is None:
            futures = function(fs, timeout)
        else:
            futures = map(_taking(sink, order, numbers, in_order), function(_numbered(fs, numbers), timeout))
        del fs  # as the original does, so that a future that was taken is gone when the script lets go of it
        yield from futures

    return as_completed


def _wait(function: Callable[..., Any], sink: Sink) -> Callable[..., Any]:
    def observe(frame: FrameType, numbers: Numbers, done: Iterable[Any], in_order: bool) -> None:
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
        frame = sys._getframe(1)
        sink.guarded("wait", lambda: observe(frame, numbers, result[0], in_order))
        return result

    return wait


def watch_futures(base: Any, recorder: Recorder) -> None:
    """Watch ``concurrent.futures._base``, before the package takes its functions from there."""
    prepare(recorder)
    sink = recorder.sink
    threads.number_futures(base)
    replace(base, "as_completed", lambda function: _as_completed(function, sink))
    replace(base, "wait", lambda function: _wait(function, sink))


def watch_pool(pool: Any, recorder: Recorder) -> None:
    """Watch what Pool.imap_unordered gives, in ``multiprocessing.pool``."""
    prepare(recorder)
    sink = recorder.sink
    orders = "_detaudit_order"

    def made(function: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            frame = sys._getframe(1)

            def find() -> None:
                through = ("multiprocessing", *_BARS)
                self.__dict__[orders] = at_line(sink, "multiprocessing.Pool.imap_unordered", frame, through)

            sink.guarded("imap_unordered", find)
            function(self, *args, **kwargs)

        return __init__

    def came(function: Callable[..., Any]) -> Callable[..., Any]:
        def _set(self: Any, i: Any, obj: Any) -> None:
            order = self.__dict__.get(orders)
            if order is not None:
                sink.guarded("imap_unordered", lambda: order.add(str(i)))
            function(self, i, obj)

        return _set

    replace(pool.IMapUnorderedIterator, "__init__", made)
    replace(pool.IMapUnorderedIterator, "_set", came)


def watch_loaders(dataloader: Any, recorder: Recorder) -> None:
    """Watch for a DataLoader of ``torch.utils.data.dataloader`` that hands out batches as workers finish them."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            function(self, *args, **kwargs)
            if getattr(self, "in_order", True) is False and self.num_workers:
                frame = sys._getframe(1)
                seeds.look(recorder.sink, "DataLoader", lambda: observe(frame))

        return __init__

    def observe(frame: FrameType) -> None:
        found = frames.users_frame(frame)
        if found is not None and seeds.room("DataLoader", frames.place(found)):
            seeds.note(recorder.sink, "completion-order-option", "DataLoader(in_order=False)", frames.place(found))

    replace(dataloader.DataLoader, "__init__", make)
