"""The code of an audit as one archive, for machines that share no folder with this one."""

import hashlib
import io
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path

from detaudit.errors import WorkspaceError
from detaudit.launch.workspace import is_venv, walk

MOST_BYTES = 256 * 2**20
"""Bytes of files that are sent to a machine with every run."""

_LEFT_OUT = (".git", "__pycache__", "node_modules", ".mypy_cache", ".pytest_cache", ".ruff_cache")


@dataclass(frozen=True)
class Snapshot:
    """A compressed tar of a repository, its SHA-256, and the working directory in it."""

    data: bytes
    digest: str
    cwd: str


def snapshot(root: Path, cwd: Path, results: Path) -> Snapshot:
    """Return the files below ``root``, without ``results`` and environments, as they are for a run that starts in cwd.

    Raises WorkspaceError if they are too many bytes, or cannot be read.
    """
    buffer, total = io.BytesIO(), 0
    try:
        with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=6) as tar:
            for entry in walk(root, results, _LEFT_OUT):
                if entry.name in _LEFT_OUT or is_venv(entry):
                    continue
                total += entry.stat(follow_symlinks=False).st_size if entry.is_file(follow_symlinks=False) else 0
                if total > MOST_BYTES:
                    raise WorkspaceError(
                        f"{root} has more than {MOST_BYTES // 2**20} MiB of files, too many to send to other machines",
                        "Move data out of the repository, or use a shared folder with `detaudit plan` and "
                        "`detaudit worker`.",
                    )
                tar.add(entry.path, os.path.join(root.name, os.path.relpath(entry.path, root)), recursive=False)
    except (OSError, tarfile.TarError) as error:
        raise WorkspaceError(f"the code in {root} cannot be read: {error}", "Make all files readable.") from error
    data = buffer.getvalue()
    return Snapshot(data, hashlib.sha256(data).hexdigest(), os.path.join(root.name, os.path.relpath(cwd, root)))
