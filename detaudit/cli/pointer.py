"""Point at what an error is about: words of the command line, or a line of a file."""

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice

import click
from rich.cells import cell_len

from detaudit import redact
from detaudit.report.plain import row
from detaudit.report.terminal import LEAST

_INDENT = "  "
_CUT = "…"
_MOST = 160
"""Columns of the line of a file that are shown in a pipe: a JSON file may be one line."""

_PLACE = re.compile(r"(.+?):([1-9]\d{0,8}):([1-9]\d{0,8})(?=[: ])")
_VALUE = re.compile(r"[^\s:,\]}#]+")
_BETWEEN = re.compile(r"[\s'\"`,;()]+")


def in_file(message: str, width: int | None) -> list[str]:
    """Return the line that a message begins with the place of, with its number, and a line that underlines it.

    Nothing if there is none, or if it has a secret.
    """
    match = _PLACE.match(message)
    if match is None:
        return []
    path, number, column = match[1], int(match[2]), int(match[3]) - 1
    try:
        with open(path, encoding="utf-8") as file:
            line = next(islice(file, number - 1, None), "")
    except (OSError, UnicodeDecodeError):
        return []
    line, end = line.removesuffix("\n"), _VALUE.match(line, column)
    if not line or column > len(line) or redact.text(line) != line:
        return []
    stop = end.end() if end else column + 1
    parts = ((line[:column], False), (line[column:stop] or " ", True), (line[stop:], False))
    letters = [(letter, named) for part, named in parts for letter in row(part)]
    return _underlined(letters, f"{number} | ", width or _MOST)


def pointed_lines(message: str, words: Sequence[str], width: int | None) -> list[str]:
    """Return the command, and below it a line that underlines what the message names; nothing if it names nothing."""
    tokens = {token.rstrip(".:") for token in _BETWEEN.split(message)}
    letters = [(letter, named) for part, named in _parts(words, message, tokens) for letter in part]
    return _underlined(letters, "", width) if any(named for _, named in letters) else []


def _underlined(letters: list[tuple[str, bool]], margin: str, width: int | None) -> list[str]:
    """Return letters behind a margin, and below them a line that underlines those that are named."""
    if width is not None:
        letters = _excerpt(letters, max(LEAST, width) - len(_INDENT + margin))
    text = "".join(letter for letter, _ in letters).rstrip()
    marks = "".join(("^" if named else " ") * cell_len(letter) for letter, named in letters).rstrip()
    below = "".join("|" if sign == "|" else " " for sign in margin)
    return [f"{_INDENT}{margin}{text}", f"{_INDENT}{below}{click.style(marks, fg='red', bold=True)}"]


def _parts(words: Sequence[str], message: str, tokens: set[str]) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a command line, and whether the message names them."""
    for index, word in enumerate(words):
        if index:
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


def _excerpt(letters: list[tuple[str, bool]], room: int) -> list[tuple[str, bool]]:
    """Return the part around the first word that is named, if a command does not fit."""
    if _taken(letters) <= room:
        return letters
    first = next(index for index, (_, named) in enumerate(letters) if named)
    start = max(0, first - room // 3)
    letters = [(_CUT, False), *letters[start + 1 :]] if start else list(letters)
    if _taken(letters) > room:
        letters = letters[:room]
        while _taken(letters) > room - cell_len(_CUT):
            letters.pop()
        letters.append((_CUT, False))
    return letters


def _taken(letters: list[tuple[str, bool]]) -> int:
    return cell_len("".join(letter for letter, _ in letters))
