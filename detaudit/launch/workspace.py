"""The working folder of runs: the user's own, or a fresh copy of it, at the same path for every run."""

import fcntl
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from detaudit import private
from detaudit.errors import WorkspaceError
from detaudit.launch import RESULTS

COPY_LIMIT = 4 * 2**30
"""Bytes that --isolate may copy per run on a file system that cannot share them."""

WORK, LIVE = "work", "live"
"""The folders below the results folder in which a run works, and to which it writes its logs."""

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

    def elsewhere(self, name: str, slot: str = "") -> "SharedWorkspace":
        """Return the same workspace: there is only one folder."""
        return self

    @contextmanager
    def fresh(self) -> Iterator[None]:
        """Do nothing: the folder is not a copy."""
        yield


class IsolatedWorkspace:
    """A copy of ``root`` for each run, which starts in the folder of the copy that corresponds to ``cwd``.

    The copy is removed after the run. The next copy has the same path, because results may depend on paths. Those of
    runs at once have paths of the same length.
    """

    def __init__(self, root: Path, cwd: Path, results: Path, name: str = "", slot: str = "") -> None:
        self._root, self._cwd, self._results, self._place = root, cwd, results, results / in_slot(WORK, slot)
        self._copy, self._temporary = self._place / (name or root.name), self._place / "tmp"
        self.workspace = Workspace(self._copy / cwd.relative_to(root), {"TMPDIR": str(self._temporary)})

    def elsewhere(self, name: str, slot: str = "") -> "IsolatedWorkspace":
        """Return the same workspace with a copy of a different name, or for a slot; this one if both are empty."""
        return IsolatedWorkspace(self._root, self._cwd, self._results, name, slot) if name or slot else self

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
            shutil.rmtree(self._place, ignore_errors=True)

    def _make(self) -> None:
        try:
            private.make_folder(self._place)
            self._check_size()
            self._copy_tree()
            private.make_folder(self._temporary)
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
            elif entry.is_file() and not _clone(Path(entry.path), target):
                shutil.copy2(entry.path, target)

    def _link(self, entry: os.DirEntry[str]) -> str:
        """Return what a copied link points to: the same file of the copy. Raises WorkspaceError if it leaves the root.

        A run would write through such a link to a folder that all runs share.
        """
        said = os.readlink(entry.path)
        direct = os.path.normpath(os.path.join(os.path.dirname(entry.path), said))
        if is_venv(entry):
            return direct
        for place in (direct, os.path.realpath(entry.path)):
            if not Path(place).is_relative_to(self._root):
                raise WorkspaceError(
                    f"--isolate cannot copy {entry.path}: it is a link to {place}, outside of {self._root}",
                    "Copy a folder that contains both with --isolate-root DIR, or replace the link by its target.",
                )
        return self.inside(said)


Workspaces: TypeAlias = SharedWorkspace | IsolatedWorkspace


def in_slot(name: str, slot: str) -> str:
    """Return the name of a folder, or of anything else, that each slot has one of."""
    return f"{name}-{slot}" if slot else name


def without_slot(text: str, results: Path, slot: str) -> str:
    """Return a text with the paths of a slot as they are if there is only one."""
    for name in (WORK, LIVE):
        text = text.replace(str(results / in_slot(name, slot)), str(results / name))
    return text


def repository_root(cwd: Path) -> Path:
    """Return the repository that contains ``cwd``, or ``cwd`` itself if there is none."""
    return next((folder for folder in (cwd, *cwd.parents) if (folder / ".git").exists()), cwd)


def walk(
    root: Path,
    results: Path,
    skipped: Collection[str] = (),
    leads_away: Callable[[os.DirEntry[str]], bool] = lambda _: False,
) -> Iterator[os.DirEntry[str]]:
    """Yield everything below ``root`` except detaudit's ``results``; a virtual environment is a single entry.

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
            if entry.name == RESULTS or entry.path == ours:
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
