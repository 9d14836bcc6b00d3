"""Find the files below the working folder that a run wrote."""

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from detaudit.launch import RESULTS
from detaudit.launch.workspace import walk

_SKIPPED = frozenset((".git", "__pycache__", RESULTS))  # Other audits may be running.
_SYSTEM = frozenset(("/dev", "/proc", "/sys"))
_CLOCK_NS = 10**9  # A file system's clock may be behind.

MOST_ENTRIES = 200_000
"""Files and folders that are looked at."""


@dataclass(frozen=True)
class Stamps:
    """What changes when a file is written, for every file that was found; ``complete`` says that all were found."""

    files: Mapping[str, tuple[int, int, int, int]]
    complete: bool = True
    at_ns: int = 0


def stamps(root: Path, results: Path, most: int = MOST_ENTRIES) -> Stamps:
    """Look at the files below ``root``, at ``most`` entries, none of them on another file system."""
    found: dict[str, tuple[int, int, int, int]] = {}
    device, at_ns = root.stat().st_dev, time.time_ns()

    def leads_away(entry: os.DirEntry[str]) -> bool:
        return entry.path in _SYSTEM or entry.stat(follow_symlinks=False).st_dev != device

    for number, entry in enumerate(walk(root, results, _SKIPPED, leads_away)):
        if number >= most:
            return Stamps(found, False, at_ns)
        if entry.is_file(follow_symlinks=False):
            with contextlib.suppress(OSError):
                stat = entry.stat(follow_symlinks=False)
                # The inode's change time reveals a file that was written with an old modification time.
                found[entry.path] = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
    return Stamps(found, True, at_ns)


def written(before: Stamps, after: Stamps) -> list[str]:
    """Return the files that changed, in the order in which they were written."""
    files, since = after.files, before.at_ns - _CLOCK_NS
    changed = [path for path, stamp in files.items() if before.files.get(path) != stamp]
    if not before.complete:  # what was not seen before need not be new
        changed = [path for path in changed if path in before.files or files[path][1] >= since]
    return sorted(changed, key=lambda path: (files[path][0], os.fsencode(path)))
