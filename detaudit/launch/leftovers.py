"""Detect when a run reads a file that an earlier run wrote: the two did not start from the same state."""

import contextlib
import os
import sys
from pathlib import Path

from detaudit.launch import RESULTS
from detaudit.launch.workspace import walk

MOST_WATCHED = 2000
_SKIPPED = (".git", "__pycache__", RESULTS)  # Other audits may be running.

_Stamp = tuple[int, int, int]


class LeftoverFiles:
    """Watches the files below a folder that earlier runs wrote.

    inotify reports whether the first access to such a file is a read. Without inotify, ``watching`` is False and
    nothing is reported.
    """

    def __init__(self, root: Path, results: Path) -> None:
        self._root, self._results = root, results
        self._before: dict[str, _Stamp] = {}
        self._written: dict[str, None] = {}
        self._watch = _new_watch()

    @property
    def watching(self) -> bool:
        """Whether reads can be detected at all."""
        return self._watch is not None

    def before_run(self) -> None:
        """Note the state of all files, and watch those that earlier runs wrote."""
        self._before = self._stamps()
        if self._watch is not None:
            written = [path for path in self._written if path in self._before]
            self._watch.start(written[:MOST_WATCHED])

    def after_run(self) -> tuple[str, ...]:
        """Return the files that an earlier run wrote and this one read, relative to the folder."""
        read = self._watch.stop() if self._watch is not None else []
        after = self._stamps()
        changed = [path for path, stamp in after.items() if self._before.get(path) != stamp]
        self._written |= dict.fromkeys(changed)
        return tuple(sorted(os.path.relpath(path, self._root) for path in read))

    def _stamps(self) -> dict[str, _Stamp]:
        stamps = {}
        for entry in walk(self._root, self._results):
            if entry.is_file(follow_symlinks=False) and not any(f"{os.sep}{s}{os.sep}" in entry.path for s in _SKIPPED):
                with contextlib.suppress(OSError):
                    stat = entry.stat(follow_symlinks=False)
                    stamps[entry.path] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        return stamps


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
