"""What the runs of an audit are made of: the user's source files, the data that they read, the packages beside them."""

import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from detaudit.compat import file_digest
from detaudit.notebooks.cells import code_of
from detaudit.runs.log import Process, display_path, loaded_files
from detaudit.wire import MOST_SOURCE_FILES

WRITTEN = "written"
"""Stands for the bytes of a file that a run may have changed: nobody knows what the first one read."""

MISSING = "missing"
"""Stands for the bytes of a file that was looked for and is not there."""

MOST_BYTES = 2**28
"""So much data is digested by its bytes, which takes a second; of the rest, the size and the times stand for them."""


def digests_of_code(cwd: Path, files: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of the user's source files, those that can be read, by their names seen from ``cwd``."""
    by_file = {}
    for file in files:
        try:
            by_file[file] = hashlib.sha256(code_of(cwd / file)).hexdigest()
        except OSError:  # run from an archive, or gone meanwhile
            continue
    return by_file


class Inputs:
    """Takes in the processes of runs, and digests each file at the first run that has it.

    ``words`` are those of the command: what names a file is data too, such as a shell script. The files are those of
    ``cwd``, also if the runs work in copies.
    """

    def __init__(self, cwd: Path, words: Sequence[str] = ()) -> None:
        self._cwd, self._began, self._left = cwd, time.time_ns(), MOST_BYTES
        self.code: dict[str, str] = {}
        """The user's source files that the runs loaded, as people name them, with the SHA-256 of their bytes."""
        self._data: dict[str, str] = {}
        self._packages: set[str] = set()
        self._taken, self._unknown = False, False
        self._digest(word for word in words if not word.endswith(".py") and os.path.isfile(cwd / word))

    def take(self, processes: Sequence[Process], ran_in: Path) -> None:
        """Take in a run, which worked ``ran_in`` a copy of the folder, or in it."""
        self.code |= digests_of_code(self._cwd, sorted(loaded_files(processes, ran_in) - {*self.code}))
        recorded = [process for process in processes if process.settings is not None]
        lines = [line for process in recorded for line in process.data]
        self._taken = self._taken or bool(recorded)
        self._unknown = self._unknown or not all(one.data for one in recorded) or any(line.spent for line in lines)
        self._packages |= {path for one in recorded if one.settings for path in one.settings.packages}
        folder = Path(os.path.realpath(ran_in))
        self._digest(display_path(path, folder) for line in lines for path in line.paths)

    @property
    def data(self) -> dict[str, str] | None:
        """The files that the runs read, as people name them, with the SHA-256 of their bytes.

        None if that is not known, which includes that more source files were loaded than are named.
        """
        known = self._taken and not self._unknown and len(self.code) < MOST_SOURCE_FILES
        return dict(sorted(self._data.items())) if known else None

    @property
    def installed(self) -> str | None:
        """A digest of which packages are installed for the runs, and since when; None if nobody said where."""
        names = [line for folder in sorted(self._packages) for line in _installed(folder)]
        return hashlib.sha256("\n".join(names).encode(errors="surrogateescape")).hexdigest() if names else None

    def _digest(self, names: Iterable[str]) -> None:
        for name in sorted({*names} - {*self._data}):
            text = self._of(self._cwd / name)
            if text is not None:
                self._data[name] = text

    def _of(self, path: Path) -> str | None:
        """Return what stands for a file; None for a temporary one that is gone, and for what is no file."""
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                return None
            if status.st_ctime_ns >= self._began:
                return WRITTEN
            if status.st_size > self._left:
                return f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
            self._left -= status.st_size
            with path.open("rb") as file:
                return file_digest(file, "sha256").hexdigest()
        except OSError:
            temporary = path.is_relative_to(tempfile.gettempdir()) and not path.is_relative_to(self._cwd)
            return None if temporary else MISSING


def _installed(folder: str) -> list[str]:
    """Return a line for each package that is installed in a folder, with the time at which it was."""
    try:
        with os.scandir(folder) as entries:
            named = [one for one in entries if one.name.endswith((".dist-info", ".egg-info", ".egg-link", ".pth"))]
            return sorted(f"{one.name} {one.stat().st_mtime_ns}" for one in named)
    except OSError:
        return []
