"""Which file a report is about, and its path in the repository, as CI systems want it."""

import os
from collections.abc import Sequence
from pathlib import Path

from detaudit.launch.workspace import repository_root


def script_of(command: Sequence[str]) -> str | None:
    """Return the file that a command of detaudit audits: the script, the module's, or the program after ``--``."""
    words = list(command[2:])
    at = words.index("--") if "--" in words else len(words)
    own, after = words[:at], words[at + 1 :]
    return script_in(own) or script_in(after) or next(iter(after), None)


def script_in(words: Sequence[str]) -> str | None:
    """Return the first Python file or module among the words of a command, None if there is none."""
    for place, word in enumerate(words):
        if word.endswith(".py") and not word.startswith("-"):
            return word
        if word == "-m" and place + 1 < len(words):
            return words[place + 1].replace(".", "/") + ".py"
    return None


def in_repository(file: str) -> str:
    """Return a path that is relative to the working directory as one relative to the root of its git repository.

    A path outside that repository is returned unchanged.
    """
    here = Path.cwd()
    root, path = repository_root(here), Path(os.path.normpath(here / file))
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file
