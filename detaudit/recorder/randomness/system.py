"""What the operating system gives a script at random or in no fixed order: entropy, and listings of folders."""

from __future__ import annotations

import os
import sys

from ..process import frames
from ..process.replace import replace, replace_in_os
from . import seeds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any

    from ..process.sink import Sink

_DRAWING = ("random", "secrets", "uuid")
_LISTING = ("os", "glob", "pathlib", "fnmatch")
"""The modules that hand a script what these functions return. A listing that a library sorts is none of ours."""

_MOST_NAMES = 10_000


def watch(sink: Sink) -> None:
    """Wrap the functions of os through which Python itself reaches entropy and listings."""
    for name, make in (("urandom", _urandom), ("listdir", _listdir), ("scandir", _scandir)):
        replace_in_os(name, lambda function, make=make: make(function, sink))  # type: ignore[misc]
    random = sys.modules.get("random")
    if hasattr(random, "_urandom"):  # imported before the recorder, with the function that stood there then
        random._urandom = os.urandom  # type: ignore[union-attr]


def watch_uuid(uuid: Any, sink: Sink) -> None:
    """Wrap the one kind of name that is made from the clock and not from entropy."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def uuid1(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            seeds.look(sink, "uuid1", lambda: _drawn(sink, frame, "uuid.uuid1"))
            return function(*args, **kwargs)

        return uuid1

    replace(uuid, "uuid1", make)


def _between(frame: FrameType, users: FrameType) -> str:
    """Return the function that the user's line called, ``""`` where that is the wrapped one itself."""
    name, place = "", frame
    while place is not users and place.f_back is not None:
        if not frames.is_ours(place):
            module, code = frames.top_module(place), place.f_code
            if module == "random":  # of which only SystemRandom comes here, under methods of its base class
                name = "random.SystemRandom." + code.co_name
            else:
                name = module + "." + getattr(code, "co_qualname", code.co_name).split(".<")[0].lstrip("_")
        place = place.f_back
    return name


def _drawn(sink: Sink, frame: FrameType, what: str = "") -> None:
    found = frames.users_frame(frame, _DRAWING)
    if found is None:
        return
    what, place = what or _between(frame, found) or "os.urandom", frames.place(found)
    if seeds.room(what, place):
        seeds.note(sink, "entropy", what, place)


def _urandom(function: Callable[..., Any], sink: Sink) -> Callable[..., Any]:
    def urandom(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        seeds.look(sink, "urandom", lambda: _drawn(sink, frame))
        return function(*args, **kwargs)

    return urandom


class _Listing:
    """Digests names as they come: their order, and which they are."""

    def __init__(self) -> None:
        from ..training import digest

        self._small = digest.small
        self._count, self._order, self._names = 0, 0, 0

    def add(self, name: Any) -> None:
        if self._count < _MOST_NAMES:
            word = self._small(os.fsencode(name))
            self._order = self._small(b"%d %d" % (self._order, word))
            self._names += word
        self._count += 1

    def __str__(self) -> str:
        return "%x/%d:%x" % (self._order, self._count, self._names)


def _noting(sink: Sink, frame: FrameType, what: str) -> Callable[[_Listing], None] | None:
    """Return what notes a listing that was asked for in this frame, None where it is not the script's or none fits."""
    found = frames.users_frame(frame, _LISTING)
    if found is None:
        return None
    what, place = _between(frame, found) or what, frames.place(found)
    if not seeds.room(what, place):
        return None
    return lambda listing: seeds.note(sink, "listing-order", what, place, str(listing))


def _listdir(function: Callable[..., Any], sink: Sink) -> Callable[..., Any]:
    def observe(frame: FrameType, names: list[Any]) -> None:
        done = _noting(sink, frame, "os.listdir")
        if done is not None:
            listing = _Listing()
            for name in names:
                listing.add(name)
            done(listing)

    def listdir(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        names = function(*args, **kwargs)
        seeds.look(sink, "listdir", lambda: observe(frame, names))
        return names

    return listdir


class _Scan:
    """Hands on the entries of os.scandir, and notes their order when all have been seen."""

    def __init__(self, entries: Any, done: Callable[[_Listing], None], sink: Sink) -> None:
        self._entries, self._done, self._sink = entries, done, sink
        self._listing = _Listing()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            entry = next(self._entries)
        except StopIteration:
            self._sink.guarded("scandir", lambda: self._done(self._listing))
            raise
        self._sink.guarded("scandir", lambda: self._listing.add(entry.name))
        return entry

    def __enter__(self) -> _Scan:
        return self

    def __exit__(self, *_: object) -> None:
        self._entries.close()

    def close(self) -> None:
        self._entries.close()


def _scandir(function: Callable[..., Any], sink: Sink) -> Callable[..., Any]:
    def observe(frame: FrameType, entries: list[Any]) -> None:
        done = _noting(sink, frame, "os.scandir")
        if done is not None:
            entries[0] = _Scan(entries[0], done, sink)

    def scandir(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        entries = [function(*args, **kwargs)]
        seeds.look(sink, "scandir", lambda: observe(frame, entries))
        return entries[0]

    return scandir
