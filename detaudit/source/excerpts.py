"""Lines around those that may be why runs differ: by the time of the report, the file may be another."""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from detaudit import redact
from detaudit.model import Excerpt
from detaudit.notebooks.cells import code_of, first_line

AROUND = 3
"""Lines before and after."""

MOST = 5
"""The number of lines of code that reports show."""

MOST_CHARACTERS = 400
"""Of a line, so that a minified file does not fill the report."""


def of(root: Path, places: Iterable[tuple[str, int]]) -> tuple[Excerpt, ...]:
    """Return the lines around the first few places, each a file (relative to ``root`` or absolute) and a line.

    A file that cannot be read, or that has no such line, has none.
    """
    excerpts = (_excerpt(root, file, line) for file, line in list(dict.fromkeys(places))[:MOST])
    return tuple(one for one in excerpts if one is not None)


def at(root: Path, file: str | None, line: int | None) -> Excerpt | None:
    """Return the lines around one, None if there is no such line."""
    return _excerpt(root, file, line) if file and line else None


def _excerpt(root: Path, file: str, line: int) -> Excerpt | None:
    try:
        data = code_of(root / file)
    except (OSError, ValueError):
        return None
    lines = re.split(r"\r\n?|\n", data.decode(errors="replace"))
    if not 1 <= line <= len(lines):
        return None
    first = max(first_line(file, line), line - AROUND)
    shown = lines[first - 1 : line + AROUND]
    while len(shown) > line - first + 1 and not shown[-1].strip():
        shown.pop()
    return Excerpt(
        file=file,
        line=line,
        first=first,
        lines=tuple(redact.text(one)[:MOST_CHARACTERS] for one in shown),
        digest=hashlib.sha256(data).hexdigest(),
    )
