"""A copy of the user's folder at one path, from which each run gets its own; large data and environments are linked."""

import os
import shutil
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from detaudit import private
from detaudit.errors import WorkspaceError
from detaudit.launch import MARK
from detaudit.launch.workspace import WORK, copy_file, is_venv, remove_copy, walk
from detaudit.notebooks.cells import SCRIPTS

"""Suffixes of code, which is copied however large it is."""

BUDGET = 2**30
"""Bytes that are copied, for each run again. If there are more, the largest files are linked that are not Python's."""

MANY = 10_000
"""A folder with more files, none of them Python's, is linked as a whole."""

TREE = "tree"
"""The folder of the copy in a results folder."""

GIT, CACHE = ".git", "__pycache__"


class SourceCopy:
    """A copy of ``root`` in a results folder; ``cwd`` is the folder of runs in it."""

    def __init__(self, root: Path, cwd: Path, results: Path) -> None:
        self.user_root, self.user_cwd = root, cwd
        self.root = results / TREE / root.name
        self.cwd = self.root / cwd.relative_to(root)
        self._results = results

    def make(self, kept: Callable[[str], bool] = lambda path: True) -> None:
        """Copy the files whose paths below the root are to be ``kept``. Raises WorkspaceError if that fails."""
        try:
            private.make_folder(self.root.parent)
            self.root.mkdir()
            found = walk(self.user_root, self._results, skipped=(GIT,), leads_away=_is_data)
            entries = [entry for entry in found if kept(os.path.relpath(entry.path, self.user_root))]
            linked = _over_budget(entries)
            for entry in entries:
                self._copy(entry, linked)
        except OSError as error:
            raise WorkspaceError(
                f"cannot copy the source: {error}", "Free disk space, or use another --out."
            ) from error

    def _copy(self, entry: os.DirEntry[str], linked: Collection[str]) -> None:
        target = self.root / Path(entry.path).relative_to(self.user_root)
        target.parent.mkdir(parents=True, exist_ok=True)
        if entry.is_symlink():
            said = os.readlink(entry.path)
            pointed = Path(os.path.normpath(os.path.join(os.path.dirname(entry.path), said)))
            inside = pointed.is_relative_to(self.user_root)
            target.symlink_to(self.root / pointed.relative_to(self.user_root) if inside else pointed)
        elif entry.is_dir():
            if is_venv(entry) or entry.name == GIT or _is_data(entry):
                target.symlink_to(entry.path)
            else:
                target.mkdir(exist_ok=True)
        elif entry.is_file():
            if entry.path in linked:
                target.symlink_to(entry.path)
            else:
                copy_file(Path(entry.path), target)

    def inside(self, path: str) -> str:
        """Return the path in this copy for an absolute path below the user's folder; others unchanged."""
        absolute = Path(path)
        if absolute.is_absolute() and absolute.is_relative_to(self.user_root):
            return str(self.root / absolute.relative_to(self.user_root))
        return path

    def remove(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self.root.parent, ignore_errors=True)


def sweep(results: Path) -> None:
    """Remove the copies in the results folder of a detaudit that was killed, and in those of its audits."""
    for folder in (results, *(one for one in results.glob("*") if one.name != "runs")):
        for copy in (*folder.glob(f"{TREE}*"), *folder.glob(f"{WORK}*")):
            if not (copy / MARK).exists():  # the results of an audit of this name
                remove_copy(copy)


def _over_budget(entries: Iterable[os.DirEntry[str]]) -> set[str]:
    """Return the largest files, without which the others fit into the budget; none of them is Python's."""
    sizes = {
        entry.path: entry.stat(follow_symlinks=False).st_size
        for entry in entries
        if entry.is_file(follow_symlinks=False) and not entry.name.endswith(SCRIPTS)
    }
    total, linked = sum(sizes.values()), set[str]()
    for path in sorted(sizes, key=lambda path: -sizes[path]):
        if total <= BUDGET:
            break
        linked.add(path)
        total -= sizes[path]
    return linked


def _is_data(folder: os.DirEntry[str]) -> bool:
    """Whether a folder has nothing but data, and much of it."""
    files = 0
    for _, _, names in os.walk(folder.path):
        files += len(names)
        if any(name.endswith(SCRIPTS) for name in names):
            return False
    return files > MANY
