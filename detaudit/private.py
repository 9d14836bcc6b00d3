"""Create files and folders for this user alone, whatever the umask: results may hold what others must not read.

The recorder imports this module too, so it uses only the standard library and runs on Python 3.9.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def opener(path: str, flags: int) -> int:
    """Open a file, and create it if ``flags`` say so: an ``opener`` for the function open."""
    return os.open(path, flags, 0o600)


def make_folder(path: Path) -> None:
    """Create a folder, and those above it that do not exist. One that exists stays as it is."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
