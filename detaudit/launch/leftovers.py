"""Detect when a run reads a file that an earlier run wrote: the two did not start from the same state."""

import contextlib
import os
import select
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from detaudit import private, wire
from detaudit.errors import StorageError

MOST_WATCHED = 8000
"""Files that inotify watches, or folders with more files. What Python reads of them, the recorder says too."""

MOST_KNOWN = 100_000
"""Files that the recorder and inotify know."""


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
    """The files that earlier runs left, from just before a run until its end.

    Each has a watch of its own. If they are too many for that, their folders have, which miss what is read by another
    name of a file. ``complete`` says that no read of native code is missed.
    """

    def __init__(self, known: Sequence[str]) -> None:
        self._watch = _new_watch(known) if known else None
        self.complete = not known or (self._watch is not None and self._watch.complete)

    def stop(self) -> frozenset[str]:
        """Return the files whose first access was a read, as far as inotify says."""
        if self._watch is None:
            return frozenset()
        found = frozenset(self._watch.stop())
        self.complete = self._watch.complete
        return found


class LeftoverFiles:
    """The files that the runs of an audit left, and which of them later runs read.

    The recorder says which line of Python reads one; inotify reports reads by other programs and native code. Runs in
    different slots may be watched at once.
    """

    def __init__(self) -> None:
        self._left: dict[str, LeftFile] = {}
        self._folders: set[str] = set()
        self._lock = threading.Lock()
        self._watchings: list[Watching] = []
        self._all_known = True
        self.reads: list[ReadFile] = []

    @property
    def complete(self) -> bool:
        """Whether no read of a file that an earlier run left was missed."""
        return self._all_known and all(watching.complete for watching in self._watchings)

    @property
    def left(self) -> tuple[LeftFile, ...]:
        """The files that runs left and that are still there."""
        with self._lock:
            return tuple(one for one in self._left.values() if os.path.lexists(one.path))

    def before_run(self, live: Path, searched: Iterable[str], listed: Iterable[str]) -> Watching:
        """Tell the recorder of a run, whose event logs are below ``live``, what earlier ones left, and watch it.

        ``searched`` are its working directory and other folders that are searched before and after the run, and
        ``listed`` parts of paths that need not be recorded. Raises StorageError if that fails.
        """
        left = self.left
        known = [one.path for one in left[:MOST_KNOWN]]
        parts = (searched, listed, known)
        data = b"\0\0".join(b"\0".join(map(os.fsencode, part)) for part in parts)
        try:
            private.make_folder(live)
            with open(live / wire.KNOWN_FILES, "wb", opener=private.opener) as file:
                file.write(data)
        except OSError as error:
            raise StorageError.of(f"write to {live}", error) from error
        watching = Watching(known)
        with self._lock:
            self._all_known = self._all_known and len(left) <= MOST_KNOWN
            self._watchings.append(watching)
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
    """The first access of each file, by an inotify watch of each, or of each folder that they are in.

    A thread reads the events, because the kernel keeps only so many. ``complete`` says that none is missing.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        import inotify_simple

        flags = inotify_simple.flags
        self._reading = flags.ACCESS | flags.CLOSE_NOWRITE
        self._overflow = flags.Q_OVERFLOW
        self._wanted = frozenset(paths)
        self._read_first: dict[str, bool] = {}
        changed = self._reading | flags.MODIFY
        of_file = changed | flags.DELETE_SELF | flags.MOVE_SELF
        in_folder = changed | flags.CREATE | flags.DELETE | flags.MOVED_FROM | flags.MOVED_TO | flags.ONLYDIR
        self._new = inotify_simple.INotify
        self._inotify = self._new()
        self._watched: dict[int, str] = {}
        self._path_of: Callable[[str, str], str] = lambda path, name: path
        self.complete = len(paths) <= MOST_WATCHED and self._add(paths, of_file)
        if not self.complete:
            self._inotify.close()
            self._inotify, self._path_of = self._new(), os.path.join
            folders = list(dict.fromkeys(map(os.path.dirname, paths)))
            self.complete = self._add(folders[:MOST_WATCHED], in_folder) and len(folders) <= MOST_WATCHED
        self._ended, self._end = os.pipe()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _add(self, paths: Iterable[str], mask: int) -> bool:
        """Watch these; return whether that could be done."""
        self._watched.clear()
        complete = True
        for path in paths:
            try:
                self._watched[self._inotify.add_watch(path, mask)] = path
            except FileNotFoundError:
                continue
            except OSError:
                complete = False
        return complete

    def _follow(self) -> None:
        ready = select.poll()
        ready.register(self._inotify.fileno(), select.POLLIN)
        ready.register(self._ended, select.POLLIN)
        while all(descriptor != self._ended for descriptor, _ in ready.poll()):
            self._take()

    def _take(self) -> None:
        for event in self._inotify.read(timeout=0):
            if event.mask & self._overflow:
                self.complete = False
            path = self._path_of(self._watched.get(event.wd, ""), event.name)
            if path in self._wanted:
                self._read_first.setdefault(path, bool(event.mask & self._reading))

    def stop(self) -> list[str]:
        os.close(self._end)
        self._thread.join()
        self._take()
        os.close(self._ended)
        self._inotify.close()  # with all its watches
        return [path for path, read in self._read_first.items() if read]


def _new_watch(paths: Sequence[str]) -> _Watch | None:
    if sys.platform != "linux":
        return None
    with contextlib.suppress(OSError):
        return _Watch(paths)
    return None
