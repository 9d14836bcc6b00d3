"""Record the entropy and the directory listings that a script takes from the operating system."""

from __future__ import annotations

import os
import sys

from ..process import frames
from ..process.replace import DirectoryScan, replace, replace_in_os
from . import seeds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any

    from ..process.log import Sink

_DRAWING = ("random", "secrets", "uuid")
_LISTING = ("os", "glob", "pathlib", "fnmatch")
"""Modules that pass the results of these functions on to a script. Listings of other libraries may be sorted there."""

_MOST_NAMES = 10_000


def watch(sink: Sink) -> None:
    """Wrap the functions of os through which Python code gets entropy and directory listings."""
    for name, make in (("urandom", _urandom), ("listdir", _listdir), ("scandir", _scandir)):
        replace_in_os(name, lambda function, make=make: make(function, sink))  # type: ignore[misc]
    random = sys.modules.get("random")
    if hasattr(random, "_urandom"):  # imported before the recorder, so it holds the original function
        random._urandom = os.urandom  # type: ignore[union-attr]


def watch_uuid(uuid: Any, sink: Sink) -> None:
    """Wrap uuid1, the only kind of UUID that comes from the clock instead of entropy."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def uuid1(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe().f_back
            seeds.observe_call(sink, "uuid1", lambda: _drawn(sink, frame, "uuid.uuid1"))
            return function(*args, **kwargs)

        return uuid1

    replace(uuid, "uuid1", make)


def _taken_by(frame: FrameType | None, user_frame: FrameType) -> str:
    library, _, name = (frames.called(frame, user_frame) or "os.urandom").partition(".")
    # Of random, only SystemRandom gets here, through methods of its base class.
    return f"random.SystemRandom.{name.rpartition('.')[2]}" if library == "random" else f"{library}.{name}"


def _drawn(sink: Sink, frame: FrameType | None, what: str = "") -> None:
    user_frame = frames.user_frame(frame, _DRAWING)
    if user_frame is None:
        return
    what, location = what or _taken_by(frame, user_frame), frames.location(user_frame)
    if seeds.has_room(what, location):
        seeds.write(sink, "entropy", what, location)


def _urandom(function: Callable[..., Any], sink: Sink) -> Callable[..., Any]:
    def urandom(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe().f_back
        seeds.observe_call(sink, "urandom", lambda: _drawn(sink, frame))
        return function(*args, **kwargs)

    return urandom


class _Listing:
    """Digests the names of a directory as they are listed: their order, and the set of names."""

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


def _writer(sink: Sink, frame: FrameType | None, what: str) -> Callable[[_Listing], None] | None:
    """Return a function that writes a listing of this frame, or None if no user code made it or enough were written."""
    user_frame = frames.user_frame(frame, _LISTING)
    if user_frame is None:
        return None
    what, location = frames.called(frame, user_frame) or what, frames.location(user_frame)
    if not seeds.has_room(what, location):
        return None
    return lambda listing: seeds.write(sink, "listing-order", what, location, str(listing))


def _listdir(function: Callable[..., Any], sink: Sink) -> Callable[..., Any]:
    def observe(frame: FrameType | None, names: list[Any]) -> None:
        write = _writer(sink, frame, "os.listdir")
        if write is not None:
            listing = _Listing()
            for name in names:
                listing.add(name)
            write(listing)

    def listdir(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe().f_back
        names = function(*args, **kwargs)
        seeds.observe_call(sink, "listdir", lambda: observe(frame, names))
        return names

    return listdir


class _RecordedScan(DirectoryScan):
    """Passes the entries of os.scandir on, and writes their order after the last one."""

    def __init__(self, entries: Any, write: Callable[[_Listing], None], sink: Sink) -> None:
        super().__init__(entries)
        self._write, self._sink = write, sink

    def _hand_out(self, entries: Any) -> Iterator[Any]:
        listing = _Listing()
        for entry in entries:
            self._sink.guarded("scandir", lambda name=entry.name: listing.add(name))  # type: ignore[misc]
            yield entry
        self._sink.guarded("scandir", lambda: self._write(listing))


def _scandir(function: Callable[..., Any], sink: Sink) -> Callable[..., Any]:
    def observe(frame: FrameType | None, entries: list[Any]) -> None:
        write = _writer(sink, frame, "os.scandir")
        if write is not None:
            entries[0] = _RecordedScan(entries[0], write, sink)

    def scandir(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe().f_back
        entries = [function(*args, **kwargs)]
        seeds.observe_call(sink, "scandir", lambda: observe(frame, entries))
        return entries[0]

    return scandir
