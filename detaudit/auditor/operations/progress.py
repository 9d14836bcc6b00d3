"""Follow a process of a scan by the lines that it writes."""

import time
from pathlib import Path

from detaudit.launch import EnoughError

STALLED_S = 120.0
"""Seconds without a line after which the operation under way is ended."""


class Watcher:
    """Is notified of the progress of a scan; does nothing by itself."""

    def progress(self, name: str, done: int, of: int) -> None:
        """Note how many of its items a pass has done."""


class Progress:
    """Follows the lines of a process, and ends it if none comes for STALLED_S."""

    def __init__(self, path: Path, name: str, of: int, watcher: Watcher) -> None:
        self._path, self._name, self._of, self._watcher = path, name, of, watcher
        self._size, self._since = -1, time.monotonic()
        self._read = self._count = 0

    def tick(self) -> None:
        """Look at the file. Raises EnoughError if it stalled."""
        size = self._path.stat().st_size if self._path.exists() else 0
        if size == self._size:
            if time.monotonic() - self._since > STALLED_S:
                raise EnoughError
            return
        self._size, self._since = size, time.monotonic()
        self._watcher.progress(self._name, self._ended() if size else 0, self._of)

    def _ended(self) -> int:
        """Return how many operations have ended, of which only the lines are read that came since the last call."""
        with self._path.open("rb") as file:
            file.seek(self._read)
            lines, _, rest = file.read().rpartition(b"\n")
            self._read = file.tell() - len(rest)
        self._count += sum(line.startswith((b'{"end"', b'{"crashed"')) for line in lines.split(b"\n"))
        return self._count
