"""A report in a terminal: tables that fit its width, and colors."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TypeAlias

import click
from rich.cells import cell_len, chop_cells

from detaudit.compat import assert_never
from detaudit.model import Report
from detaudit.report import groups
from detaudit.report.document import (
    Answer,
    Block,
    Code,
    Heading,
    Interrupted,
    Items,
    Mood,
    NextSteps,
    Notes,
    Section,
    Stderr,
    Table,
    Text,
    Warnings,
    without,
)
from detaudit.report.sections import sections

# Fill lines of a terminal: break text at spaces, and shell commands so that they can still be pasted.


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


# Fit a table into the columns of a terminal: wrap its texts, then leave out what matters least.


Styled: TypeAlias = Callable[[str, str], str]
"""Returns a cell, given its header too, with what takes no column, such as a color."""

_GAP = 2
"""Columns between two columns of a table."""

COMFORT = {
    "AUDIT": 16,
    "DESCRIPTION": 24,
    "FIRST DIFFERENCE": 17,
    "FLAGS": 24,
    "GATE": 16,
    "MATCHES CONTROL": 17,
    "RESULT": 12,
    "RUNS MATCH": 17,
    "VARIED": 16,
}
"""Columns of texts that may be wrapped, each with the width below which other columns are left out first."""

LEAST_IMPORTANT = (
    "TIME",
    "STEPS",
    "TYPE",
    "SHAPE",
    "DEVICES",
    "FINAL LOSS",
    "USED",
    "LOSS",
    "SUM OF WEIGHTS",
    "DIGEST",
    "RUNS",
    "DIFFERENCE",
)
"""Columns that may be left out, in this order."""


def fitted(table: Table, width: int | None) -> Table:
    """Return a table that fits into ``width`` columns; its note names the columns that are left out for it.

    A table without a width is returned as it is.
    """
    if width is None or not table.rows:
        return table
    width = max(LEAST, width)
    found, silent = table, _silent(table)
    for header in (*silent, *LEAST_IMPORTANT):
        if header in found.headers and _taken(_widths(found, _comfortable)) > width:
            found = without(found, header)
    gone = ", ".join(header for header in table.headers if header not in (*found.headers, *silent))
    note = f"hidden at this width: {gone}" if gone else ""
    return replace(_wrapped(found, width), note="; ".join(filter(None, [table.note, note])))


def drawn(table: Table, width: int | None, styled: Styled = lambda header, cell: cell) -> str:
    """Return a table that fits, with its note below it; see lines."""
    shown = fitted(table, width)
    return "\n".join([*lines(shown, styled), *([filled(shown.note, width)] if shown.note else [])])


def lines(table: Table, styled: Styled = lambda header, cell: cell) -> Iterator[str]:
    """Yield the lines of a table."""
    names = [header.replace("\n", " ") for header in table.headers]
    cells = [[text.split("\n") for text in row] for row in (table.headers, *table.rows)]
    widths = [max(map(width_of, chain(*column))) for column in zip(*cells, strict=True)]
    for number, row in enumerate(cells):
        for parts in zip_longest(*row, fillvalue=""):
            drawn = (
                _padded(styled(name, part), size, left=table.is_left(name))
                for name, part, size in zip(names, parts, widths, strict=True)
            )
            yield (" " * _GAP).join(drawn).rstrip()
        if number == 0:
            yield (" " * _GAP).join("-" * size for size in widths)


def _padded(text: str, size: int, *, left: bool) -> str:
    space = " " * (size - width_of(text))
    return text + space if left else space + text


def _silent(table: Table) -> list[str]:
    """Return the columns that say nothing."""
    columns = zip(table.headers, *table.rows, strict=True)
    return [header for header, *cells in columns if all(cell in ("", "-") for cell in cells)]


def _widths(table: Table, least: Callable[[str, int, int], int]) -> list[int]:
    """Return a width for each column; ``least`` is given its header, its longest word and its longest text."""
    found = []
    for header, *cells in zip(table.headers, *table.rows, strict=True):
        texts = [header, *cells]
        longest = max(map(width_of, texts))
        word = max(width_of(part) for text in texts for part in text.split(" "))
        found.append(least(header, word, longest))
    return found


def _comfortable(header: str, word: int, longest: int) -> int:
    return min(longest, max(word, COMFORT[header])) if header in COMFORT else longest


def _tightest(header: str, word: int, longest: int) -> int:
    return word if header in COMFORT else longest


def _taken(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _wrapped(table: Table, width: int) -> Table:
    """Return a table whose texts are wrapped as far as needed, the longest ones first."""
    widths = _widths(table, lambda header, word, longest: longest)
    for least in (_widths(table, _comfortable), _widths(table, _tightest)):
        while _taken(widths) > width and (may := [place for place, at in enumerate(least) if widths[place] > at]):
            widths[max(may, key=widths.__getitem__)] -= 1
    while _taken(widths) > width and max(widths) > 1:  # words have to be broken
        widths[widths.index(max(widths))] -= 1
    headers, *rows = (list(map(_cell, row, widths)) for row in (table.headers, *table.rows))
    return replace(table, headers=headers, rows=rows)


def _cell(text: str, width: int) -> str:
    """Return the text of a cell in lines of ``width`` columns."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and width_of(lines[-1]) + 1 + width_of(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines += chop_cells(word, width) or [""]
    return "\n".join(lines)


# A report for a terminal, in lines that fit into its width.


_COLORS = {Mood.GOOD: "green", Mood.BAD: "red", Mood.UNCLEAR: "yellow"}

_ANSWERS = ("RESULT", "RUNS MATCH", "MATCHES CONTROL")
_MOODS = {
    "passed": Mood.GOOD,
    "yes": Mood.GOOD,
    "failed": Mood.BAD,
    "no": Mood.BAD,
    "incomparable": Mood.UNCLEAR,
    "inconclusive": Mood.UNCLEAR,
}
"""The first words of cells in columns of answers."""

_SIGNS = {"> ": "cyan", "- ": "red", "+ ": "green"}
"""Colors of code that is quoted, removed or added."""

_MARKS = ("cyan", "magenta", "yellow", "blue", "green", "red")
"""Colors of digests that are marked with the letters A, B, …"""


def render(report: Report, width: int | None = None) -> str:
    """Return the whole report, in lines of ``width`` columns; None if it is not for a terminal."""
    return "\n\n".join(_section(section, width) for section in sections(report)) + "\n"


def _section(blocks: Section, width: int | None) -> str:
    """Return the blocks of a section, with an empty line between a table and what follows it."""
    drawn = [f"{_drawn(block, width)}\n" if isinstance(block, Table) else _drawn(block, width) for block in blocks]
    return "\n".join(drawn).removesuffix("\n")


def _drawn(block: Block, width: int | None) -> str:
    match block:
        case Heading(text=text):
            return click.style(filled(text, width), bold=True)
        case Table():
            return drawn(block, width, _colored)
        case Answer(word=word, mood=mood, sentence=sentence, evidence=evidence):
            answer = f"{click.style(word, fg=_COLORS[mood], bold=True)}: {sentence}"
            return "\n".join(filled(text, width, by) for text, by in ((answer, ""), (evidence, "  ")) if text)
        case Warnings() | Interrupted() | NextSteps():
            return _ending(block, width)
        case _:
            return _lines(block, width)


def _colored(header: str, cell: str) -> str:
    """Return a cell of a table in its color; equal digests have the same."""
    _, marked, mark = cell.rpartition(" ")
    if header == "DIGEST" and marked:
        return click.style(cell, fg=_MARKS[groups.number(mark) % len(_MARKS)])
    mood = _MOODS.get(cell.split(" ")[0].rstrip(":,")) if header in _ANSWERS else None
    return click.style(cell, fg=_COLORS[mood]) if mood else cell


def _lines(block: Text | Items | Code | Stderr | Notes, width: int | None) -> str:
    match block:
        case Text(lines=lines):
            return _filled(lines, width)
        case Items(lines=lines):
            return _filled(lines, width, "  ")
        case Code(lines=lines):
            return "\n".join(_quoted(line, width) for line in lines)
        case Stderr(caption=caption, lines=lines):
            tail = "\n".join(filled(line, width, "  | ", "  | ") for line in lines)
            return f"{filled(caption, width)}\n{tail}"
        case Notes(lines=lines):
            return "\n".join(click.style(filled(line, width), dim=True) for line in lines)
        case _:
            assert_never(block)


def _quoted(line: str, width: int | None) -> str:
    """Return a line below a culprit, with quoted code in the color of its sign."""
    text = filled(line, width, "  ")
    color = _SIGNS.get(line.lstrip()[:2])
    return click.style(text, fg=color) if color else text


def _filled(lines: Iterable[str], width: int | None, indent: str = "") -> str:
    return "\n".join(filled(line, width, indent) for line in lines)


def _ending(block: Warnings | Interrupted | NextSteps, width: int | None) -> str:
    match block:
        case Warnings(lines=lines):
            return _filled([f"{click.style('warning:', fg='yellow')} {line}" for line in lines], width)
        case Interrupted(text=text):
            return filled(f"{click.style('interrupted', fg='yellow', bold=True)}: {text}", width)
        case NextSteps(steps=steps):
            return "\n".join(["next:", *_steps(steps, width)])
        case _:
            assert_never(block)


def _steps(steps: Sequence[tuple[str, str]], width: int | None) -> Iterable[str]:
    for comment, words in steps:
        yield filled(f"# {comment}", width, "  ", "  # ")
        yield command(words, width, "  ")
