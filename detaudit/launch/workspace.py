"""The working folder, shared or copied: what a run changed, and what it read of earlier runs."""

import contextlib
import fcntl
import functools
import hashlib
import os
import select
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import psutil

from detaudit import private, wire
from detaudit.errors import StorageError, WorkspaceError
from detaudit.launch import MARK, RESULTS

# The working folder of runs: the user's own, or a fresh copy of it, at the same path for every run.


COPY_LIMIT = 4 * 2**30
"""Bytes that --isolate may copy per run on a file system that cannot share them."""

WORK, LIVE = "work", "live"
"""The folders below the results folder in which a run works, and to which it writes its logs."""

_MOST_TEMPORARY = 64
"""Characters of the path of a temporary folder. That of a socket has at most 107, of which multiprocessing takes 32 for
those by which the workers of a DataLoader send tensors: with a longer path, they do not start, and the training waits.
"""

_FICLONE = 0x40049409  # linux/fs.h


@dataclass(frozen=True)
class Workspace:
    """Where a run starts, and the variables that keep its temporary files there."""

    cwd: Path
    env: dict[str, str]


class SharedWorkspace:
    """The user's own folder, shared by all runs."""

    def __init__(self, cwd: Path) -> None:
        self.workspace = Workspace(cwd, {})

    def inside(self, path: str) -> str:
        """Return the path unchanged."""
        return path

    def with_copy(self, name: str, slot: str = "") -> "SharedWorkspace":
        """Return the same workspace: there is only one folder."""
        return self

    @contextmanager
    def fresh(self) -> Iterator[None]:
        """Do nothing: the folder is not a copy."""
        yield


class IsolatedWorkspace:
    """A copy of ``root`` for each run, which starts in the folder of the copy that corresponds to ``cwd``.

    The copy is removed after the run. The next copy has the same path, because results may depend on paths. Those of
    runs at once have paths of the same length. ``linked``: links may lead out of ``root``, and are kept.
    """

    def __init__(
        self, root: Path, cwd: Path, results: Path, name: str = "", slot: str = "", *, linked: bool = False
    ) -> None:
        self._root, self._cwd, self._results, self._place = root, cwd, results, results / in_slot(WORK, slot)
        self._linked = linked
        self._copy, self._temporary = self._place / (name or root.name), self._place / "tmp"
        self._link_to_it = short_link(self._place) if len(str(self._temporary)) > _MOST_TEMPORARY else None
        temporary = self._link_to_it or self._temporary
        self.workspace = Workspace(self._copy / cwd.relative_to(root), {"TMPDIR": str(temporary)})

    def with_copy(self, name: str, slot: str = "") -> "IsolatedWorkspace":
        """Return the same workspace with a copy of a different name, or for a slot; this one if both are empty."""
        if not (name or slot):
            return self
        return IsolatedWorkspace(self._root, self._cwd, self._results, name, slot, linked=self._linked)

    def inside(self, path: str) -> str:
        """Return the path in the copy for an absolute path below the root; other paths unchanged."""
        absolute = Path(path)
        if absolute.is_absolute() and absolute.is_relative_to(self._root):
            return str(self._copy / absolute.relative_to(self._root))
        return path

    @contextmanager
    def fresh(self) -> Iterator[None]:
        """Make the copy, and remove it afterwards. Raises WorkspaceError if it is too large or cannot be made."""
        try:
            self._make()
            yield
        finally:
            remove_copy(self._place)

    def _make(self) -> None:
        try:
            private.make_folder(self._place)
            self._check_size()
            self._copy_tree()
            private.make_folder(self._temporary)
            if self._link_to_it is not None:
                self._link_to_it.unlink(missing_ok=True)  # of a process that was killed
                self._link_to_it.symlink_to(self._temporary)
        except OSError as error:
            raise WorkspaceError(
                f"--isolate could not copy the repository: {error}",
                "Free disk space, or copy less with --isolate-root DIR.",
            ) from error

    def _files(self) -> Iterator[os.DirEntry[str]]:
        return (e for e in walk(self._root, self._results) if e.is_file(follow_symlinks=False))

    def _check_size(self) -> None:
        sizes: dict[str, int] = {}
        for entry in self._files():
            top = Path(entry.path).relative_to(self._root).parts[0]
            sizes[top] = sizes.get(top, 0) + entry.stat(follow_symlinks=False).st_size
        total = sum(sizes.values())
        room = min(COPY_LIMIT, shutil.disk_usage(self._place).free)
        if total > room and not self._shares_blocks():
            largest = max(sizes, key=lambda top: sizes[top])
            raise WorkspaceError(
                f"--isolate would copy {_gib(total)} per run, but the limit here is {_gib(room)}; "
                f"the largest item is {self._root / largest} ({_gib(sizes[largest])})",
                "Copy less with --isolate-root DIR, or move large files out of the repository.",
            )

    def _shares_blocks(self) -> bool:
        source = next((Path(entry.path) for entry in self._files() if entry.stat().st_size), None)
        with tempfile.NamedTemporaryFile(dir=self._place) as probe:
            return source is not None and _clone(source, Path(probe.name))

    def _copy_tree(self) -> None:
        self._copy.mkdir()
        for entry in walk(self._root, self._results):
            target = self._copy / Path(entry.path).relative_to(self._root)
            if entry.is_symlink():
                target.symlink_to(self._link(entry))
            elif entry.is_dir():
                target.symlink_to(entry.path) if is_venv(entry) else target.mkdir()
            elif entry.is_file():
                copy_file(Path(entry.path), target)

    def _link(self, entry: os.DirEntry[str]) -> str:
        """Return what a copied link points to: the same file of the copy. Raises WorkspaceError if it leaves the root.

        A run would write through such a link to a folder that all runs share.
        """
        said = os.readlink(entry.path)
        direct = os.path.normpath(os.path.join(os.path.dirname(entry.path), said))
        if is_venv(entry) or (self._linked and not Path(direct).is_relative_to(self._root)):
            return direct
        for target in (direct, os.path.realpath(entry.path)):
            if not Path(target).is_relative_to(self._root):
                raise WorkspaceError(
                    f"--isolate cannot copy {entry.path}: it is a link to {target}, outside of {self._root}",
                    "Copy a folder that contains both with --isolate-root DIR, or replace the link by its target.",
                )
        return self.inside(said)


Workspaces: TypeAlias = SharedWorkspace | IsolatedWorkspace


def in_slot(name: str, slot: str) -> str:
    """Return the name of a folder, or of anything else, that each slot has one of."""
    return f"{name}-{slot}" if slot else name


def short_link(copy: Path) -> Path:
    """Return the link to the temporary folder of a run in this copy, if the path of that is long."""
    name, slot = copy.name.partition("-")[::2]
    folder = hashlib.sha256(os.fsencode(copy.with_name(name))).hexdigest()[:12]
    return Path(tempfile.gettempdir(), in_slot(f"detaudit-{folder}", slot))


def remove_copy(copy: Path) -> None:
    """Remove the folder of a copy, and the link to its temporary folder."""
    link = short_link(copy)
    with suppress(OSError):  # of another user
        if link.is_symlink():
            link.unlink()
    shutil.rmtree(copy, ignore_errors=True)


def without_slot(text: str, results: Path, slot: str) -> str:
    """Return a text with the paths of a slot as they are if there is only one."""
    for name in (WORK, LIVE):
        text = text.replace(str(results / in_slot(name, slot)), str(results / name))
    return text.replace(str(short_link(results / in_slot(WORK, slot))), str(short_link(results / WORK)))


def repository_root(cwd: Path) -> Path:
    """Return the repository that contains ``cwd``, or ``cwd`` itself if there is none."""
    return next((folder for folder in (cwd, *cwd.parents) if (folder / ".git").exists()), cwd)


def walk(
    root: Path,
    results: Path,
    skipped: Collection[str] = (),
    leads_away: Callable[[os.DirEntry[str]], bool] = lambda _: False,
) -> Iterator[os.DirEntry[str]]:
    """Yield everything below ``root`` except the results of audits; a virtual environment is a single entry.

    Nothing in folders whose names are ``skipped``, or that lead away, is yielded. What is nearer to the root is first.
    """
    ours = os.fspath(results)
    folders = deque([os.fspath(root)])
    while folders:
        try:
            entries = sorted(os.scandir(folders.popleft()), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.name == RESULTS or entry.path == ours or os.path.exists(os.path.join(entry.path, MARK)):
                continue
            yield entry
            if entry.name in skipped or not entry.is_dir(follow_symlinks=False) or is_venv(entry):
                continue
            with suppress(OSError):
                if not leads_away(entry):
                    folders.append(entry.path)


def is_venv(entry: os.DirEntry[str]) -> bool:
    """Return whether a folder is a virtual environment, which is linked to and never copied or searched."""
    return os.path.exists(os.path.join(entry.path, "pyvenv.cfg"))


def copy_file(source: Path, target: Path) -> None:
    """Copy a file with its times and its mode; share its blocks if the file system can."""
    if not _clone(source, target):
        shutil.copy2(source, target)


def _clone(source: Path, target: Path) -> bool:
    """Share the blocks of ``source`` with ``target`` (btrfs, XFS); return whether the file system can."""
    try:
        with open(source, "rb") as reading, open(target, "wb") as writing:
            fcntl.ioctl(writing, _FICLONE, reading.fileno())
    except OSError:
        return False
    shutil.copystat(source, target)
    return True


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


# Find the files below the working folder that a run wrote.


_SKIPPED = frozenset((".git", "__pycache__", RESULTS))  # Other audits may be running.
_SYSTEM = frozenset(("/dev", "/proc", "/sys"))
_CLOCK_NS = 10**9  # A file system's clock may be behind.

MOST_ENTRIES = 200_000
"""Files and folders that are looked at."""

MOST_PREFIX, MOST_PREFIXES = 2**23, 2**26
"""Bytes of a file whose content is noted before a run, and of all of them, to know whether it was only appended to."""

Stamp = tuple[int, int, int, int]
"""The times of the last changes of a file and of its inode, its size and the number of its inode."""


@dataclass(frozen=True)
class Stamps:
    """What changes when a file is written, for every file that was found, and the ``folders``.

    ``complete`` says that all were found. ``links`` have what they lead to, as they say it.
    """

    files: Mapping[str, Stamp]
    complete: bool = True
    at_ns: int = 0
    folders: frozenset[str] = frozenset()
    links: Mapping[str, tuple[Stamp, str]] = field(default_factory=dict)

    def existed(self, path: str) -> bool:
        """Whether a file may have been there: one that was not found can have been, if not all were."""
        return path in self.files or not self.complete


_Inodes: TypeAlias = set[tuple[int, int]]


@functools.cache
def own_outputs() -> frozenset[tuple[int, int]]:
    """Return the devices and inodes of the files that detaudit's own output goes to.

    They are those of its descriptors, and those that programs opened which read its output through pipes, such as
    ``tee``. What a program has from the shell, as this one does, is no output of ours.
    """
    files, pipes = _open_in("self", (1, 2))
    inherited = _open_in("self", range(3, 256))[0]
    waiting = {str(pid) for pid in psutil.pids()} - {str(os.getpid())} if pipes else set()
    while reading := {pid for pid in waiting if _open_in(pid, (0,))[1] & pipes}:
        waiting -= reading
        for pid in reading:
            opened, onwards = _open_in(pid, range(1, 256))
            files, pipes = files | (opened - inherited), pipes | onwards
    return frozenset(files)


def _open_in(pid: str, descriptors: Iterable[int]) -> tuple[_Inodes, _Inodes]:
    """Return the files and the pipes that a process has at some descriptors, as far as this user may see them."""
    files, pipes = _Inodes(), _Inodes()
    for number in descriptors:
        with suppress(OSError):
            status = os.stat(f"/proc/{pid}/fd/{number}")
            if stat.S_ISREG(status.st_mode):
                files.add((status.st_dev, status.st_ino))
            elif stat.S_ISFIFO(status.st_mode):
                pipes.add((status.st_dev, status.st_ino))
    return files, pipes


def stamps(
    root: Path,
    results: Path,
    folders: Iterable[str] = (),
    most: int = MOST_ENTRIES,
    without: Container[tuple[int, int]] = (),
) -> Stamps:
    """Look at the files below ``root`` and other ``folders``, at ``most`` entries, none of them on another file system.

    Folders that are gone count as empty. ``without`` are the devices and inodes of files that do not count.
    """
    file_stamps: dict[str, Stamp] = {}
    links: dict[str, tuple[Stamp, str]] = {}
    below: set[str] = set()
    at_ns, number = time.time_ns(), 0
    for folder in (root, *map(Path, folders)):
        try:
            device = folder.stat().st_dev
        except FileNotFoundError:
            if folder == root:
                raise
            continue

        def leads_away(entry: os.DirEntry[str], device: int = device) -> bool:
            return entry.path in _SYSTEM or entry.stat(follow_symlinks=False).st_dev != device

        for entry in walk(folder, results, _SKIPPED, leads_away):
            number += 1
            if number > most:
                return Stamps(file_stamps, False, at_ns, frozenset(below), links)
            if entry.is_file(follow_symlinks=False) or entry.is_symlink():
                with contextlib.suppress(OSError):
                    now = entry.stat(follow_symlinks=False)
                    if (now.st_dev, now.st_ino) in without:
                        continue
                    # The inode's change time reveals a file that was written with an old modification time.
                    stamp = (now.st_mtime_ns, now.st_ctime_ns, now.st_size, now.st_ino)
                    if entry.is_symlink():
                        links[entry.path] = stamp, os.readlink(entry.path)
                    else:
                        file_stamps[entry.path] = stamp
            elif entry.is_dir(follow_symlinks=False):
                below.add(entry.path)
    return Stamps(file_stamps, True, at_ns, frozenset(below), links)


def written(before: Stamps, after: Stamps) -> list[str]:
    """Return the files that changed, in the order in which they were written."""
    files, since = after.files, before.at_ns - _CLOCK_NS
    changed = [path for path, stamp in files.items() if before.files.get(path) != stamp]
    if not before.complete:  # what was not seen before need not be new
        changed = [path for path in changed if path in before.files or files[path][1] >= since]
    return sorted(changed, key=lambda path: (files[path][0], os.fsencode(path)))


def links(before: Stamps, after: Stamps) -> list[tuple[str, str, bool]]:
    """Return the links that are there, each with what it leads to, and whether it was made since."""
    since = before.at_ns - _CLOCK_NS
    return [
        (path, target, before.links.get(path, ((),))[0] != stamp and (before.complete or stamp[1] >= since))
        for path, (stamp, target) in sorted(after.links.items())
    ]


class Prefixes:
    """The contents of files before a run, as far as they are small, which show whether they were only appended to."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._digests: dict[str, tuple[int, bytes]] = {}
        left = MOST_PREFIXES
        for path in paths:
            with contextlib.suppress(OSError):
                size = os.path.getsize(path)
                if 0 < size <= min(left, MOST_PREFIX):
                    self._digests[path] = size, _digest(path, size)
                    left -= size

    def appended_to(self, path: str) -> int:
        """Return the size of a file before, if it has grown since and its old content is as it was; else 0."""
        size, digest = self._digests.get(path, (0, b""))
        with contextlib.suppress(OSError):
            if size and os.path.getsize(path) > size and _digest(path, size) == digest:
                return size
        return 0


def _digest(path: str, size: int) -> bytes:
    with open(path, "rb") as file:
        return hashlib.blake2b(file.read(size), digest_size=16).digest()


# Detect when a run reads a file that an earlier run wrote: the two did not start from the same state.


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
        files = frozenset(self._watch.stop())
        self.complete = self._watch.complete
        return files


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

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that did not exist before the audit."""
        with self._lock:
            return tuple(self._folders)

    def before_run(
        self, live: Path, searched: Iterable[str], listed: Iterable[str], carried: Iterable[str] = ()
    ) -> Watching:
        """Tell the recorder of a run, whose event logs are below ``live``, what earlier ones left, and watch it.

        ``searched`` are its working directory and other folders that are searched before and after the run, and
        ``listed`` parts of paths that need not be recorded; ``carried`` are files that it is to carry on with, wherever
        they are. Raises StorageError if that fails.
        """
        left = self.left
        known = [*dict.fromkeys([*carried, *(one.path for one in left)])][:MOST_KNOWN]
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
        read_files: dict[str, ReadFile] = {}
        with self._lock:
            for path, file, line in reads:
                left = self._left.get(path)
                if left is not None and not (path in read_files and read_files[path].line):
                    read_files[path] = ReadFile(left, run, file, line)
            for path, existed in written:
                before = self._left.get(path)
                self._left[path] = LeftFile(path, run, before.created if before is not None else not existed)
            self.reads += read_files.values()
        return tuple(read_files[path] for path in sorted(read_files))

    def forget_reads(self, run: RunName) -> None:
        """Forget what a run read that is done again."""
        with self._lock:
            self.reads = [one for one in self.reads if one.by != run]

    def note_folders(self, made: Iterable[str]) -> None:
        """Note folders that did not exist before the audit."""
        with self._lock:
            self._folders.update(made)

    def to_put_aside(self, files: Iterable[LeftFile]) -> tuple[str, ...]:
        """Return what must be gone for a run to start without these files, but for those that existed before the audit.

        That is a file, or the topmost folder above it that did not exist before the audit, if all that is in it was
        written by runs of the audit. Folders right below the home folder are everybody's.
        """
        home = os.path.realpath(os.path.expanduser("~"))
        created = {one.path for one in self.left if one.created}
        paths: dict[str, None] = {}
        for one in files:
            if one.path in created:
                above = _above(one.path)
                folders = [
                    one
                    for one in above
                    if one in self._folders and os.path.dirname(one) != home and _all_in(one, created)
                ]
                paths[folders[-1] if folders else one.path] = None
        return tuple(path for path in paths if not any(other in paths for other in _above(path)))


def _above(path: str) -> list[str]:
    folders = []
    while (folder := os.path.dirname(path)) != path:
        folders.append(folder)
        path = folder
    return folders


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
