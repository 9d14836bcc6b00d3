"""Detect when a run reads a file that an earlier run wrote: the two did not start from the same state."""

import contextlib
import sys
from collections.abc import Iterable

from detaudit.launch.changes import Stamps

MOST_WATCHED = 2000


class LeftoverFiles:
    """Watches the files that earlier runs wrote.

    inotify reports whether the first access to such a file is a read. Without inotify, ``watching`` is False and
    nothing is reported.
    """

    def __init__(self) -> None:
        self._written: dict[str, None] = {}
        self._watch = _new_watch()

    @property
    def watching(self) -> bool:
        """Whether reads can be detected at all."""
        return self._watch is not None

    def before_run(self, present: Stamps) -> None:
        """Watch the files that earlier runs wrote and that are ``present``."""
        if self._watch is not None:
            self._watch.start([path for path in self._written if path in present.files][:MOST_WATCHED])

    def after_run(self, written: Iterable[str]) -> tuple[str, ...]:
        """Take in what this run wrote; return the files that an earlier run wrote and this one read first."""
        read = self._watch.stop() if self._watch is not None else []
        self._written |= dict.fromkeys(written)
        return tuple(sorted(read))


class _Watch:
    """One inotify watch for each file, and the first relevant event of each."""

    def __init__(self) -> None:
        import inotify_simple

        self._library = inotify_simple
        self._flags = inotify_simple.flags
        self._inotify = inotify_simple.INotify()
        self._paths: dict[int, str] = {}

    def start(self, paths: list[str]) -> None:
        flags = self._flags
        mask = flags.ACCESS | flags.CLOSE_NOWRITE | flags.MODIFY | flags.DELETE_SELF | flags.MOVE_SELF
        for path in paths:
            with contextlib.suppress(OSError):
                self._paths[self._inotify.add_watch(path, mask)] = path

    def stop(self) -> list[str]:
        read_first: dict[int, bool] = {}
        for event in self._inotify.read(timeout=0):
            read_first.setdefault(event.wd, bool(event.mask & (self._flags.ACCESS | self._flags.CLOSE_NOWRITE)))
        read = [self._paths[wd] for wd, was_read in read_first.items() if was_read and wd in self._paths]
        for wd in self._paths:
            with contextlib.suppress(OSError):
                self._inotify.rm_watch(wd)
        self._inotify.read(timeout=0)  # Removing a watch is an event too.
        self._paths = {}
        return read


def _new_watch() -> _Watch | None:
    if sys.platform != "linux":
        return None
    try:
        return _Watch()
    except OSError:
        return None
