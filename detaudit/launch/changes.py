"""Find the files below the working folder that a run wrote."""

import contextlib
import hashlib
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from detaudit.launch import RESULTS
from detaudit.launch.workspace import walk

_SKIPPED = frozenset((".git", "__pycache__", RESULTS))  # Other audits may be running.
_SYSTEM = frozenset(("/dev", "/proc", "/sys"))
_CLOCK_NS = 10**9  # A file system's clock may be behind.

MOST_ENTRIES = 200_000
"""Files and folders that are looked at."""

MOST_PREFIX, MOST_PREFIXES = 2**23, 2**26
"""Bytes of a file whose content is noted before a run, and of all of them, to know whether it was only appended to."""

Stamp = tuple[int, int, int, int]
"""The times of the last changes of a file and of its inode, its size and the number of its inode."""


@dataclass(frozen=True)
class Stamps:
    """What changes when a file is written, for every file that was found, and the ``folders``.

    ``complete`` says that all were found.
    """

    files: Mapping[str, Stamp]
    complete: bool = True
    at_ns: int = 0
    folders: frozenset[str] = frozenset()

    def existed(self, path: str) -> bool:
        """Whether a file may have been there: one that was not found can have been, if not all were."""
        return path in self.files or not self.complete


def stamps(root: Path, results: Path, folders: Iterable[str] = (), most: int = MOST_ENTRIES) -> Stamps:
    """Look at the files below ``root`` and other ``folders``, at ``most`` entries, none of them on another file system.

    Folders that are gone count as empty.
    """
    found: dict[str, Stamp] = {}
    below: set[str] = set()
    at_ns, number = time.time_ns(), 0
    for folder in (root, *map(Path, folders)):
        try:
            device = folder.stat().st_dev
        except FileNotFoundError:
            if folder == root:
                raise
            continue

        def leads_away(entry: os.DirEntry[str], device: int = device) -> bool:
            return entry.path in _SYSTEM or entry.stat(follow_symlinks=False).st_dev != device

        for entry in walk(folder, results, _SKIPPED, leads_away):
            number += 1
            if number > most:
                return Stamps(found, False, at_ns, frozenset(below))
            if entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    stat = entry.stat(follow_symlinks=False)
                    # The inode's change time reveals a file that was written with an old modification time.
                    found[entry.path] = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
            elif entry.is_dir(follow_symlinks=False):
                below.add(entry.path)
    return Stamps(found, True, at_ns, frozenset(below))


def written(before: Stamps, after: Stamps) -> list[str]:
    """Return the files that changed, in the order in which they were written."""
    files, since = after.files, before.at_ns - _CLOCK_NS
    changed = [path for path, stamp in files.items() if before.files.get(path) != stamp]
    if not before.complete:  # what was not seen before need not be new
        changed = [path for path in changed if path in before.files or files[path][1] >= since]
    return sorted(changed, key=lambda path: (files[path][0], os.fsencode(path)))


class Prefixes:
    """The contents of files before a run, as far as they are small, which show whether they were only appended to."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._digests: dict[str, tuple[int, bytes]] = {}
        left = MOST_PREFIXES
        for path in paths:
            with contextlib.suppress(OSError):
                size = os.path.getsize(path)
                if 0 < size <= min(left, MOST_PREFIX):
                    self._digests[path] = size, _digest(path, size)
                    left -= size

    def appended_to(self, path: str) -> int:
        """Return the size of a file before, if it has grown since and its old content is as it was; else 0."""
        size, digest = self._digests.get(path, (0, b""))
        with contextlib.suppress(OSError):
            if size and os.path.getsize(path) > size and _digest(path, size) == digest:
                return size
        return 0


def _digest(path: str, size: int) -> bytes:
    with open(path, "rb") as file:
        return hashlib.blake2b(file.read(size), digest_size=16).digest()
