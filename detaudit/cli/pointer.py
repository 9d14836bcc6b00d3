"""Point at the words of a command line that an error names."""

import re
import shlex
from collections.abc import Iterator, Sequence

import click
from rich.cells import cell_len

from detaudit.report.plain import row

_INDENT = "  "
_CUT = "…"
_BETWEEN = re.compile(r"[\s'\"`,;()]+")


def lines(message: str, words: Sequence[str], width: int | None) -> list[str]:
    """Return the command, and below it a line that underlines what the message names; nothing if it names nothing."""
    tokens = {token.rstrip(".:") for token in _BETWEEN.split(message)}
    found = [(letter, named) for part, named in _parts(words, message, tokens) for letter in part]
    if not any(named for _, named in found):
        return []
    if width is not None:
        found = _excerpt(found, width - len(_INDENT))
    command = "".join(letter for letter, _ in found)
    marks = "".join(("^" if named else " ") * cell_len(letter) for letter, named in found).rstrip()
    return [_INDENT + command, _INDENT + click.style(marks, fg="red", bold=True)]


def _parts(words: Sequence[str], message: str, tokens: set[str]) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a command line, and whether the message names them."""
    for place, word in enumerate(words):
        if place:
            yield " ", False
        option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        for part in filter(None, (option, equals, value)):
            named = part != equals and _is_named(part, message, tokens)
            yield (part if part == equals else shlex.quote(row(part))), named


def _is_named(part: str, message: str, tokens: set[str]) -> bool:
    """Whether a message names a word: it quotes it, or it is an option or a path."""
    if part.startswith("-") or "." in part or "/" in part:
        return part in tokens or f"'{part}'" in message
    return f"'{part}'" in message


def _excerpt(found: list[tuple[str, bool]], room: int) -> list[tuple[str, bool]]:
    """Return the part around the first word that is named, if a command does not fit."""
    if _taken(found) <= room:
        return found
    first = next(place for place, (_, named) in enumerate(found) if named)
    start = max(0, first - room // 3)
    found = [(_CUT, False), *found[start + 1 :]] if start else list(found)
    if _taken(found) > room:
        while _taken(found) > room - cell_len(_CUT):
            found.pop()
        found.append((_CUT, False))
    return found


def _taken(found: list[tuple[str, bool]]) -> int:
    return cell_len("".join(letter for letter, _ in found))
