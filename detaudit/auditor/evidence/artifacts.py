"""Find the files that a run wrote, and digest their contents."""

import contextlib
import glob
import hashlib
import importlib.util
import os
import stat
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from detaudit.auditor.evidence.formats import (
    BROKEN,
    NEEDS_H5PY,
    Part,
    UnusableError,
    check_unpacked,
    pieces,
    reader_for,
)
from detaudit.auditor.evidence.formats.floats import Total
from detaudit.errors import UsageError
from detaudit.model import RunError, Warning  # the term for it
from detaudit.model.problems import ArtifactMissing, ArtifactsNotWritten
from detaudit.model.warnings import ArtifactsSkipped

H5PY_HINT = "pip install 'detaudit[artifacts]' where detaudit is installed"
_SHOWN = 3

_Stamp = tuple[int, int, int, int]


def check(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of --artifact. Raises UsageError for an empty one, or if its reader is missing."""
    found = tuple(dict.fromkeys(patterns))
    if "" in found:
        raise UsageError("--artifact takes the path of a file", "Name a file that the script writes.")
    needing = next((path for path in found if path.lower().endswith(NEEDS_H5PY)), None)
    if needing and not _has_h5py():
        raise UsageError(f"--artifact {needing}: h5py, which reads such files, is not installed", f"{H5PY_HINT}.")
    return found


def _has_h5py() -> bool:
    return importlib.util.find_spec("h5py") is not None


@dataclass(frozen=True)
class Written:
    """The files that a run wrote, by the names that --artifact gives them, and why there are none."""

    files: dict[str, Path]
    error: RunError | None = None
    warning: Warning | None = None


class Files:
    """The files of one --artifact: created before a run, read after it."""

    def __init__(self, pattern: str, cwd: Path, results: Path) -> None:
        self._pattern, self._cwd = pattern, cwd
        self._results = None if cwd.is_relative_to(results) else results  # --isolate works below it
        self._before = self._stamps()

    def written(self) -> Written:
        """Return the files that changed since. A file that did not change says nothing about a run."""
        after = self._stamps()
        new = {name: self._cwd / name for name, stamp in after.items() if self._before.get(name) != stamp}
        old = [name for name in after if name not in new]
        names, more = tuple(old[:_SHOWN]), max(0, len(old) - _SHOWN)
        if new:
            return Written(new, warning=ArtifactsSkipped(files=names, more=more) if old else None)
        if old:
            return Written({}, ArtifactsNotWritten(files=names, more=more))
        return Written({}, ArtifactMissing(pattern=self._pattern, folder=(self._cwd / self._pattern).is_dir()))

    def _stamps(self) -> dict[str, _Stamp]:
        """Return the regular files that match; a path that exists is not a pattern, whatever characters it has."""
        literal = os.path.lexists(self._cwd / self._pattern)
        names = [self._pattern] if literal else glob.glob(self._pattern, root_dir=self._cwd, recursive=True)
        stamps = {}
        for name in sorted(names):
            path = self._cwd / name
            with contextlib.suppress(OSError):
                found = path.stat()
                if stat.S_ISREG(found.st_mode) and not self._ours(path):
                    # The inode's change time reveals a file that was written with an old modification time.
                    stamps[name] = (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)
        return stamps

    def _ours(self, path: Path) -> bool:
        return self._results is not None and path.resolve().is_relative_to(self._results)


@dataclass(frozen=True)
class Contents:
    """The contents of a file: ``parts`` are the name and digest of each tensor, ``total`` is the sum of its floats."""

    parts: tuple[tuple[str, str], ...]
    by: str
    total: float | None = None

    @property
    def digest(self) -> str:
        """One digest of them all."""
        return hashlib.blake2b(repr(self.parts).encode(), digest_size=16).hexdigest()


def read(path: Path) -> Contents:
    """Return what is in a file. Raises UnusableError if there is nothing to compare, or no way to."""
    try:
        reader, size = reader_for(path), path.stat().st_size
        if not size:
            raise UnusableError("is empty")
        with warnings.catch_warnings():  # such as of escapes in a text
            warnings.simplefilter("ignore")
            found = reader.parts(path) if reader else None
            if found is not None:
                return _contents(found, "tensors", size)
        with path.open("rb") as file:
            return _contents(iter([Part("", pieces(file))]), "bytes", size)
    except ModuleNotFoundError as error:
        raise UnusableError(f"needs {error.name} to be read: {H5PY_HINT}") from error
    except BROKEN as error:
        raise UnusableError(f"cannot be read as {path.suffix or 'a file'}: {type(error).__name__}: {error}") from error


def _contents(parts: Iterator[Part], by: str, size: int) -> Contents:
    total, found, unpacked = Total(), [], 0
    for part in parts:
        digest = hashlib.blake2b(repr((part.dtype, part.shape)).encode(), digest_size=16)
        for piece in part.pieces:
            digest.update(piece)
            unpacked += len(piece)
            check_unpacked(unpacked, size)
            total.add(part.dtype, piece)
        found.append((part.name, digest.hexdigest()))
    if not found:
        raise UnusableError("holds no tensors")
    return Contents(tuple(found), by, total.value)
