"""Keep what a run prints in a file of limited size."""

import os
from pathlib import Path

from detaudit import private

LIMIT = 64 * 2**20
"""Maximum size of a log in bytes. Of a longer output, the end is kept."""

TAIL = 2**20
_CUT = b"[detaudit: "
_NOTICE = 100


class Log:
    """A file that the run appends to, and that is emptied whenever it is too long.

    The run keeps writing while the file is emptied. The notice and the last MiB are therefore put in front only at
    the end, when no process writes to it any more. What is written between the last read and the truncation is lost.
    """

    def __init__(self, path: Path) -> None:
        """Open the file. Raises OSError if it cannot be written."""
        # In append mode the run continues at the new end after the file was emptied.
        self.file = open(path, "a+b", buffering=0, opener=private.opener)  # noqa: SIM115
        self._emptied = 0
        self._tail = b""

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *_: object) -> None:
        with self.file:
            if self._emptied or self._size() > LIMIT:
                self._finish()

    def bound(self) -> None:
        """Empty the file if it is too long. Raises OSError if it cannot be read."""
        if self._size() > LIMIT:
            self._take()

    def _take(self) -> None:
        at = max(0, self._size() - TAIL)
        taken = self._tail if at == 0 else b""
        while chunk := os.pread(self.file.fileno(), TAIL, at):
            at += len(chunk)
            taken = (taken + chunk)[-TAIL:]
        os.ftruncate(self.file.fileno(), 0)
        self._emptied += at
        self._tail = taken

    def _finish(self) -> None:
        total = self._emptied + self._size()
        if self._size() > LIMIT - TAIL - _NOTICE:
            self._take()
        kept = self._tail + os.pread(self.file.fileno(), LIMIT, 0)
        os.ftruncate(self.file.fileno(), 0)
        self.file.write(_CUT + b"%d bytes of output were dropped]\n" % (total - len(kept)) + kept)

    def _size(self) -> int:
        return os.fstat(self.file.fileno()).st_size


def was_cut(log: Path) -> bool:
    """Return whether a log is incomplete. Raises OSError if it cannot be read."""
    with log.open("rb") as file:
        return file.read(len(_CUT)) == _CUT
