"""A copy of the user's folder in which changes are tried."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from detaudit.fix.changes import Change, Text, all_applied, text_of
from detaudit.launch.tree import SourceCopy
from detaudit.launch.workspace import WORK
from detaudit.notebooks.cells import SCRIPTS


class Tree(SourceCopy):
    """A copy of the user's folder, and the changes that are made in it."""

    def __init__(self, root: Path, cwd: Path, results: Path) -> None:
        super().__init__(root, cwd, results)
        self.before: dict[str, Text] = {}
        self.after: dict[str, Text] = {}

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
        own = path.suffix in SCRIPTS and path.is_relative_to(self.root) and path.is_file() and not path.is_symlink()
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
