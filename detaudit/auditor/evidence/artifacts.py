"""Find the files that a run wrote, and digest their contents."""

import contextlib
import glob
import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from detaudit.auditor.evidence.files import MOST_VALUES, digested
from detaudit.auditor.evidence.formats import BROKEN, UnusableError, format_of, pieces
from detaudit.auditor.evidence.formats.floats import Total
from detaudit.errors import UsageError
from detaudit.model import RunError, Warning  # the term for it
from detaudit.model.problems import ArtifactMissing, ArtifactsNotWritten
from detaudit.model.warnings import ArtifactsSkipped

_SHOWN = 3

_Stamp = tuple[int, int, int, int]


def check(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of --artifact. Raises UsageError for an empty one."""
    found = tuple(dict.fromkeys(patterns))
    if "" in found:
        raise UsageError("--artifact takes the path of a file", "Name a file that the script writes.")
    return found


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
    """The contents of a file: ``digest`` is of its bytes, by which it is compared.

    ``values`` are the names and digests of what it holds, by which a difference is named, none if that could not be
    read. ``total`` is the sum of its floats.
    """

    digest: str
    values: tuple[tuple[str, str], ...] = ()
    total: float | None = None


def read(path: Path) -> Contents:
    """Return what is in a file. Raises UnusableError if there is nothing to compare."""
    try:
        digest, size = hashlib.sha256(), path.stat().st_size
        if not size:
            raise UnusableError("is empty")
        with path.open("rb") as file:
            for piece in pieces(file):
                digest.update(piece)
    except OSError as error:
        raise UnusableError(f"cannot be read: {type(error).__name__}: {error}") from error
    total, values = Total(), list[tuple[str, str]]()
    try:
        for part, data in digested(format_of(path), path, size, total=total):
            if len(values) < MOST_VALUES:
                values.append((part.name, data.digest))
    except (UnusableError, ModuleNotFoundError, *BROKEN):  # its bytes are compared all the same
        return Contents(digest.hexdigest())
    return Contents(digest.hexdigest(), tuple(values), total.value)
