"""What a run prints: kept in a file that is emptied whenever it is found to be longer than a limit."""

import os
from pathlib import Path
from typing import Self

LIMIT = 64 * 2**20
"""Bytes of output kept of a run; of what is more, the last ones are."""

TAIL = 2**20
_CUT = b"[detaudit: "
_NOTICE = 100


class Log:
    """A file that the run appends to, and that may be emptied meanwhile.

    What the run writes while the file is emptied comes after it, so the notice and the last MiB of what was there are
    put before it only at the end, when nobody writes any more. What comes in the instant between the last look at the
    file and its emptying is lost.
    """

    def __init__(self, path: Path) -> None:
        """Open the file. Raises OSError where it cannot be written."""
        # Appending, so that the run goes on at the new end after the file was emptied.
        self.file = open(path, "a+b", buffering=0)  # noqa: SIM115
        self._emptied = 0
        self._tail = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.file:
            if self._emptied or self._size() > LIMIT:
                self._settle()

    def bound(self) -> None:
        """Empty the file if it is too long. Raises OSError where it cannot be read."""
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

    def _settle(self) -> None:
        total = self._emptied + self._size()
        if self._size() > LIMIT - TAIL - _NOTICE:
            self._take()
        kept = self._tail + os.pread(self.file.fileno(), LIMIT, 0)
        os.ftruncate(self.file.fileno(), 0)
        self.file.write(_CUT + b"%d bytes of output are not kept]\n" % (total - len(kept)) + kept)

    def _size(self) -> int:
        return os.fstat(self.file.fileno()).st_size


def was_cut(log: Path) -> bool:
    """Whether a log is no longer whole. Raises OSError where it cannot be read."""
    with log.open("rb") as file:
        return file.read(len(_CUT)) == _CUT
