"""Detect when a run reads a file that an earlier run wrote: the two did not start from the same state."""

import contextlib
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from detaudit import private, wire
from detaudit.errors import StorageError

MOST_WATCHED = 8000
"""Files that inotify watches; the recorder knows them all, and misses only what native code reads."""

MOST_KNOWN = 100_000


@dataclass(frozen=True)
class RunName:
    """Which run: its recipe, and its number."""

    recipe: str
    number: int


@dataclass(frozen=True)
class LeftFile:
    """A file that a run left; ``by`` was the last to write it. If ``created``, it did not exist before the audit."""

    path: str
    by: RunName
    created: bool


@dataclass(frozen=True)
class ReadFile:
    """That a run read a file before it wrote it, at a line of user code; ``""`` and 0 if that is unknown."""

    left: LeftFile
    by: RunName
    file: str = ""
    line: int = 0


class Watching:
    """The files that earlier runs left, from just before a run until its end."""

    def __init__(self, known: Sequence[str]) -> None:
        self.known = frozenset(known)
        self._watch = _new_watch()
        started = self._watch is not None and self._watch.start(known[:MOST_WATCHED])
        self.complete = started and len(known) <= MOST_WATCHED

    def stop(self) -> frozenset[str]:
        """Return the files whose first access was a read, as far as inotify says."""
        return frozenset(self._watch.stop()) if self._watch is not None else frozenset()


class LeftoverFiles:
    """The files that the runs of an audit left, and which of them later runs read.

    The recorder says which line of Python reads one; inotify reports reads by other programs and native code. Runs in
    different slots may be watched at once.
    """

    def __init__(self) -> None:
        self._left: dict[str, LeftFile] = {}
        self._folders: set[str] = set()
        self._lock = threading.Lock()
        self.reads: list[ReadFile] = []
        self.complete = True

    @property
    def left(self) -> tuple[LeftFile, ...]:
        """The files that runs left and that are still there."""
        with self._lock:
            return tuple(one for one in self._left.values() if os.path.lexists(one.path))

    def before_run(self, live: Path, cwd: Path, listed: Iterable[str]) -> Watching:
        """Tell the recorder of a run, whose event logs are below ``live``, what earlier ones left, and watch it.

        ``listed`` are parts of paths that need not be recorded. Raises StorageError if that fails.
        """
        known = [one.path for one in self.left][:MOST_KNOWN]
        parts = ([os.path.realpath(cwd)], listed, known)
        data = b"\0\0".join(b"\0".join(map(os.fsencode, part)) for part in parts)
        try:
            private.make_folder(live)
            with open(live / wire.KNOWN_FILES, "wb", opener=private.opener) as file:
                file.write(data)
        except OSError as error:
            raise StorageError.of(f"write to {live}", error) from error
        watching = Watching(known)
        self.complete = self.complete and (watching.complete or not known)
        return watching

    def after_run(
        self, run: RunName, reads: Iterable[tuple[str, str, int]], written: Iterable[tuple[str, bool]]
    ) -> tuple[ReadFile, ...]:
        """Take in what a run read, with the lines, and wrote; return the files that an earlier run wrote.

        ``written`` has the files that are still there, and whether each existed before the run.
        """
        found: dict[str, ReadFile] = {}
        with self._lock:
            for path, file, line in reads:
                left = self._left.get(path)
                if left is not None and not (path in found and found[path].line):
                    found[path] = ReadFile(left, run, file, line)
            for path, existed in written:
                before = self._left.get(path)
                self._left[path] = LeftFile(path, run, before.created if before is not None else not existed)
            self.reads += found.values()
        return tuple(found[path] for path in sorted(found))

    def note_folders(self, made: Iterable[str]) -> None:
        """Note folders that did not exist before the audit."""
        with self._lock:
            self._folders.update(made)

    @property
    def made_folders(self) -> tuple[str, ...]:
        """Folders that did not exist before the audit."""
        with self._lock:
            return tuple(sorted(self._folders))

    def to_put_aside(self, files: Iterable[LeftFile]) -> tuple[str, ...]:
        """Return what must be gone for a run to start without these files, but for those that existed before the audit.

        That is a file, or the topmost folder above it that did not exist before the audit, if all that is in it was
        written by runs of the audit. Folders right below the home folder are everybody's.
        """
        home = os.path.realpath(os.path.expanduser("~"))
        created = {one.path for one in self.left if one.created}
        found: dict[str, None] = {}
        for one in files:
            if one.path in created:
                above = _above(one.path)
                folders = [
                    one
                    for one in above
                    if one in self._folders and os.path.dirname(one) != home and _all_in(one, created)
                ]
                found[folders[-1] if folders else one.path] = None
        return tuple(path for path in found if not any(other in found for other in _above(path)))


def _above(path: str) -> list[str]:
    found = []
    while (folder := os.path.dirname(path)) != path:
        found.append(folder)
        path = folder
    return found


def _all_in(folder: str, created: set[str]) -> bool:
    inside = (os.path.join(top, name) for top, _, names in os.walk(folder) for name in names)
    return all(path in created for path in inside)


class _Watch:
    """One inotify watch for each file, and the first relevant event of each."""

    def __init__(self) -> None:
        import inotify_simple

        self._library = inotify_simple
        self._flags = inotify_simple.flags
        self._inotify = inotify_simple.INotify()
        self._paths: dict[int, str] = {}

    def start(self, paths: Iterable[str]) -> bool:
        flags, complete = self._flags, True
        mask = flags.ACCESS | flags.CLOSE_NOWRITE | flags.MODIFY | flags.DELETE_SELF | flags.MOVE_SELF
        for path in paths:
            try:
                self._paths[self._inotify.add_watch(path, mask)] = path
            except FileNotFoundError:
                continue
            except OSError:
                complete = False
        return complete

    def stop(self) -> list[str]:
        read_first: dict[int, bool] = {}
        for event in self._inotify.read(timeout=0):
            read_first.setdefault(event.wd, bool(event.mask & (self._flags.ACCESS | self._flags.CLOSE_NOWRITE)))
        read = [self._paths[wd] for wd, was_read in read_first.items() if was_read and wd in self._paths]
        self._inotify.close()  # with all its watches
        return read


def _new_watch() -> _Watch | None:
    if sys.platform != "linux":
        return None
    with contextlib.suppress(OSError):
        return _Watch()
    return None
