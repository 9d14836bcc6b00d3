"""A copy of the user's folder at one path, in which changes are tried; large data and environments are linked."""

import os
import shutil
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from detaudit import private
from detaudit.errors import WorkspaceError
from detaudit.fix.changes import Change, Text, all_applied, text_of
from detaudit.launch.workspace import WORK, copy_file, is_venv, walk
from detaudit.notebooks.cells import SUFFIX

BUDGET = 2**30
"""Bytes that are copied, for each run again. If there are more, the largest files are linked that are not Python's."""

MANY = 10_000
"""A folder with more files, none of them Python's, is linked as a whole."""

_GIT = ".git"


class Tree:
    """A copy of ``root`` in a results folder, and the changes that are made in it; ``cwd`` is the folder of runs."""

    def __init__(self, root: Path, cwd: Path, results: Path) -> None:
        self.user_root, self.user_cwd = root, cwd
        self.root = results / "tree" / root.name
        self.cwd = self.root / cwd.relative_to(root)
        self._results = results
        self.before: dict[str, Text] = {}
        self.after: dict[str, Text] = {}

    def make(self) -> None:
        """Copy the source. Raises WorkspaceError if that is not possible."""
        try:
            private.make_folder(self.root.parent)
            self.root.mkdir()
            entries = [*walk(self.user_root, self._results, skipped=(_GIT,), leads_away=_is_data)]
            linked = _over_budget(entries)
            for entry in entries:
                self._copy(entry, linked)
        except OSError as error:
            raise WorkspaceError(
                f"cannot copy the source: {error}", "Free disk space, or use another --out."
            ) from error

    def _copy(self, entry: os.DirEntry[str], linked: Collection[str]) -> None:
        target = self.root / Path(entry.path).relative_to(self.user_root)
        if entry.is_symlink():
            said = os.readlink(entry.path)
            pointed = Path(os.path.normpath(os.path.join(os.path.dirname(entry.path), said)))
            inside = pointed.is_relative_to(self.user_root)
            target.symlink_to(self.root / pointed.relative_to(self.user_root) if inside else pointed)
        elif entry.is_dir():
            if is_venv(entry) or entry.name == _GIT or _is_data(entry):
                target.symlink_to(entry.path)
            else:
                target.mkdir()
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

    def name(self, file: str) -> str:
        """Return a file as seen from ``cwd``; one that a run named by its path in its own copy is that of this copy."""
        path = Path(file)
        if not path.is_absolute() or not path.is_relative_to(self._results):
            return file
        _, *below = path.relative_to(self._results).parts  # of a round
        if below[:2] != [WORK, self.root.name]:
            return file
        return os.path.relpath(self.root.joinpath(*below[2:]), self.cwd)

    def is_own(self, file: str) -> bool:
        """Whether a file, named as seen from ``cwd``, is one of the user's that may be changed."""
        path = Path(os.path.normpath(self.cwd / file))
        own = (
            path.suffix in (".py", SUFFIX)
            and path.is_relative_to(self.root)
            and path.is_file()
            and not path.is_symlink()
        )
        with suppress(OSError, SyntaxError, ValueError):
            return own and bool(self.text(file).lines)
        return False

    def text(self, file: str) -> Text:
        """Return the user's text of a file. Raises SyntaxError or ValueError if Python cannot read it."""
        if file not in self.before:
            self.before[file] = text_of(file, (self.user_cwd / file).read_bytes())
        return self.before[file]

    def change(self, changes: Sequence[Change]) -> bool:
        """Make these changes, and no others; return False, and make none, if one of them cannot be applied."""
        texts = {change.file: self.text(change.file) for change in changes}
        changed = all_applied(texts, changes)
        if changed is None:
            return False
        for file in {*self.after} - {*changed}:
            self._write(file, self.before[file])
        for file, text in changed.items():
            self._write(file, text)
        self.after = changed
        return True

    def _write(self, file: str, text: Text) -> None:
        path = self.cwd / file
        data = text.data
        if path.read_bytes() != data:
            path.write_bytes(data)

    def remove(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self.root.parent, ignore_errors=True)


def _over_budget(entries: Iterable[os.DirEntry[str]]) -> set[str]:
    """Return the largest files, without which the others fit into the budget; none of them is Python's."""
    sizes = {
        entry.path: entry.stat(follow_symlinks=False).st_size
        for entry in entries
        if entry.is_file(follow_symlinks=False) and not entry.name.endswith((".py", SUFFIX))
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
        if any(name.endswith((".py", SUFFIX)) for name in names):
            return False
    return files > MANY
