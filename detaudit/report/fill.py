"""Fill lines of a terminal: break text at spaces, and shell commands so that they can still be pasted."""

import re

import click
from rich.cells import cell_len

LEAST = 40
"""The smallest width that anything is made to fit into."""

MOST_TEXT = 120
"""The longest line of text; only tables and what is meant to be copied use more of a wide terminal."""

_HANGING = "  "
_WORD = re.compile(r" *[^ ]+")
_SHELL_WORD = re.compile(r""" *(?:[^ '"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""")
_CONTINUED = " \\"


def width_of(text: str) -> int:
    """Return how many columns a line takes, with its wide characters and without its colors."""
    return cell_len(click.unstyle(text))


def filled(text: str, width: int | None, indent: str = "", hanging: str | None = None) -> str:
    """Return one line of text as lines that fit into ``width`` columns, as it is if that is None.

    Only a word that does not fit into a line of its own makes a longer one, because a terminal that breaks it still
    copies it whole. ``hanging`` begins all lines but the first; without it, these are indented by two more spaces.
    """
    start = len(text) - len(text.lstrip(" "))
    indent += text[:start]
    hanging = indent + _HANGING if hanging is None else hanging
    if width is None:
        return indent + text[start:]
    return _broken(_WORD.findall(text[start:]), max(LEAST, min(width, MOST_TEXT)), indent, hanging)


def command(text: str, width: int | None, indent: str = "") -> str:
    """Return a shell command as lines that fit, each but the last with a backslash at its end."""
    words = _SHELL_WORD.findall(text)
    if width is None or width_of(indent + text) <= max(LEAST, width) or "".join(words) != text:
        return indent + text
    room, hanging = max(LEAST, width) - len(_CONTINUED), indent + 2 * _HANGING
    lines = _broken(_with_values(words, room - width_of(hanging)), room, indent, hanging)
    return lines.replace("\n", f"{_CONTINUED}\n")


def _with_values(words: list[str], room: int) -> list[str]:
    """Return the words of a command, each option as one with the value after it if both fit into a line."""
    found: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        is_value = before.startswith(" -") and not word.startswith(" -")
        if is_value and width_of(before + word) <= room:
            found[-1] += word
        else:
            found.append(word)
    return found


def _broken(words: list[str], width: int, indent: str, hanging: str) -> str:
    """Return words, each with the spaces before it, in lines that are broken at spaces."""
    lines, line, room = [], indent, width - width_of(indent)
    begun = False
    for word in words:
        taken = width_of(word)
        if begun and taken > room:
            lines.append(line)
            line, word = hanging, word.lstrip(" ")
            taken, room = width_of(word), width - width_of(hanging)
        line, room, begun = line + word, room - taken, True
    return "\n".join([*lines, line])
