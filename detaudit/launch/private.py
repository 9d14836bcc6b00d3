"""Create files and folders for this user alone, whatever the umask: results may hold what others must not read."""

from pathlib import Path


def make_folder(path: Path) -> None:
    """Create a folder, and those above it that do not exist. One that exists stays as it is."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
