"""Where in a repository a report points to: the audited script, and files as the systems of a CI name them."""

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
    """Return the first file or module of Python among the words of a command, None where there is none."""
    for place, word in enumerate(words):
        if word.endswith(".py") and not word.startswith("-"):
            return word
        if word == "-m" and place + 1 < len(words):
            return words[place + 1].replace(".", "/") + ".py"
    return None


def in_repository(file: str) -> str:
    """Return a path, told from the working directory, as it is told from the root of the git repository around that.

    One that lies outside comes back as it is.
    """
    here = Path.cwd()
    root, path = repository_root(here), Path(os.path.normpath(here / file))
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file
