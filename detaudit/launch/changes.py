"""Find the files below the working folder that a run wrote."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from detaudit.launch import RESULTS
from detaudit.launch.workspace import walk

_SKIPPED = frozenset((".git", "__pycache__", RESULTS))  # Other audits may be running.

Stamps = Mapping[str, tuple[int, int, int, int]]


def stamps(root: Path, results: Path) -> Stamps:
    """Return what changes when a file is written, for every file below ``root``."""
    found = {}
    for entry in walk(root, results, _SKIPPED):
        if entry.is_file(follow_symlinks=False):
            with contextlib.suppress(OSError):
                stat = entry.stat(follow_symlinks=False)
                # The inode's change time reveals a file that was written with an old modification time.
                found[entry.path] = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
    return found


def written(before: Stamps, after: Stamps) -> list[str]:
    """Return the files that changed, in the order in which they were written."""
    changed = [path for path, stamp in after.items() if before.get(path) != stamp]
    return sorted(changed, key=lambda path: (after[path][0], os.fsencode(path)))
