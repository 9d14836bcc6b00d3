"""Ask git about the user's repository, without disturbing it, and also where a hook of another one called."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from detaudit.errors import UsageError, WorkspaceError

_OF_CALLER = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
"""Variables that git sets for its hooks, in which a check may run."""

_SETTINGS = (
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "filter.lfs.smudge=",
    "filter.lfs.process=",
    "filter.lfs.required=false",
)
"""Of git: no hook runs, and no file of LFS is downloaded."""


def git_output(folder: Path, *words: str, timeout: float | None = None, env: Mapping[str, str] | None = None) -> str:
    """Return what git prints, which runs no hook and takes no lock that can be done without.

    ``env`` are more variables. Bytes that are no UTF-8 are surrogates. Raises UsageError without git, WorkspaceError if
    it fails, or takes longer than ``timeout`` seconds.
    """
    own = {name: value for name, value in os.environ.items() if name not in _OF_CALLER}
    program = shutil.which("git")
    if program is None:
        raise UsageError("git is needed here, and not installed", "Install git.")
    settings = (word for one in _SETTINGS for word in ("-c", one))
    try:
        done = subprocess.run(
            [program, *settings, *words],
            cwd=folder,
            env={**own, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", **(env or {})},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise WorkspaceError(f"git {words[0]} took too long", "Check the repository with `git status`.") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"git {words[0]} failed"]
        raise WorkspaceError(lines[-1].removeprefix("fatal: "), "Check the repository with `git status`.")
    return done.stdout.decode(errors="surrogateescape")
