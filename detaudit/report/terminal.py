"""A report in a terminal: tables that fit its width, and colors."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

import click
from rich.cells import cell_len, chop_cells

from detaudit.compat import assert_never
from detaudit.model import Report
from detaudit.report.document import (
    Answer,
    Block,
    Cell,
    Code,
    Column,
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
    parts: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        is_value = before.startswith(" -") and not word.startswith(" -")
        if is_value and width_of(before + word) <= room:
            parts[-1] += word
        else:
            parts.append(word)
    return parts


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


_GAP = 2
"""Columns between two columns of a table."""


def fitted(table: Table, width: int | None) -> Table:
    """Return a table that fits into ``width`` columns; its note names the columns that are left out for it.

    A table without a width is returned as it is.
    """
    if width is None or not table.rows:
        return table
    width = max(LEAST, width)
    shown, silent = table, _silent(table)
    droppable = sorted((column for column in table.columns if column.drop), key=lambda column: column.drop)
    for column in (*silent, *droppable):
        if _taken(_widths(shown, _comfortable)) > width:
            shown = without(shown, column)
    gone = ", ".join(one.title for one in table.columns if one not in (*shown.columns, *silent))
    note = f"hidden at this width: {gone}" if gone else ""
    return replace(_wrapped(shown, width), note="; ".join(filter(None, [table.note, note])))


def drawn(table: Table, width: int | None) -> str:
    """Return a table that fits, with its note below it; see lines."""
    shown = fitted(table, width)
    return "\n".join([*lines(shown), *([filled(shown.note, width)] if shown.note else [])])


def lines(table: Table) -> Iterator[str]:
    """Yield the lines of a table."""
    cells = [[text.split("\n") for text in row] for row in (table.headers, *table.rows)]
    widths = [max(map(width_of, chain(*column))) for column in zip(*cells, strict=True)]
    for number, (row, texts) in enumerate(zip((table.headers, *table.rows), cells, strict=True)):
        for parts in zip_longest(*texts, fillvalue=""):
            drawn = (
                _padded(_colored(cell, part), size, left=column.left)
                for cell, part, column, size in zip(row, parts, table.columns, widths, strict=True)
            )
            yield (" " * _GAP).join(drawn).rstrip()
        if number == 0:
            yield (" " * _GAP).join("-" * size for size in widths)


def _padded(text: str, size: int, *, left: bool) -> str:
    space = " " * (size - width_of(text))
    return text + space if left else space + text


def _colored(cell: str, part: str) -> str:
    """Return a line of a cell in the color of its mood, or of its mark: equal digests have the same."""
    if not isinstance(cell, Cell) or not part:
        return part
    if cell.mark is not None:
        return click.style(part, fg=_MARKS[cell.mark % len(_MARKS)])
    return click.style(part, fg=_COLORS[cell.mood]) if cell.mood else part


def _silent(table: Table) -> list[Column]:
    """Return the columns that say nothing."""
    columns = zip(table.columns, *table.rows, strict=True)
    return [column for column, *cells in columns if all(cell in ("", "-") for cell in cells)]


def _widths(table: Table, least: Callable[[Column, int, int], int]) -> list[int]:
    """Return a width for each column; ``least`` is given it, its longest word and its longest text."""
    widths = []
    for column, *cells in zip(table.columns, *table.rows, strict=True):
        texts = [column.title, *cells]
        longest = max(map(width_of, texts))
        word = max(width_of(part) for text in texts for part in text.split(" "))
        widths.append(least(column, word, longest))
    return widths


def _comfortable(column: Column, word: int, longest: int) -> int:
    return min(longest, max(word, column.comfort)) if column.comfort else longest


def _tightest(column: Column, word: int, longest: int) -> int:
    return word if column.comfort else longest


def _taken(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _wrapped(table: Table, width: int) -> Table:
    """Return a table whose texts are wrapped as far as needed, the longest ones first."""
    widths = _widths(table, lambda column, word, longest: longest)
    for least in (_widths(table, _comfortable), _widths(table, _tightest)):
        while _taken(widths) > width and (may := [index for index, at in enumerate(least) if widths[index] > at]):
            widths[max(may, key=widths.__getitem__)] -= 1
    while _taken(widths) > width and max(widths) > 1:  # words have to be broken
        widths[widths.index(max(widths))] -= 1
    columns = [one._replace(title=_cell(one.title, size)) for one, size in zip(table.columns, widths, strict=True)]
    return replace(table, columns=columns, rows=[list(map(_cell, row, widths)) for row in table.rows])


def _cell(text: str, width: int) -> str:
    """Return the text of a cell in lines of ``width`` columns."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and width_of(lines[-1]) + 1 + width_of(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines += chop_cells(word, width) or [""]
    wrapped = "\n".join(lines)
    return text.of(wrapped) if isinstance(text, Cell) else wrapped


# A report for a terminal, in lines that fit into its width.


_COLORS = {Mood.GOOD: "green", Mood.BAD: "red", Mood.UNCLEAR: "yellow"}

_SIGNS = {"> ": "cyan", "- ": "red", "+ ": "green"}
"""Colors of code that is quoted, removed or added."""

_MARKS = ("cyan", "magenta", "yellow", "blue", "green", "red")
"""Colors of results that several runs share."""


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
            return drawn(block, width)
        case Answer(word=word, mood=mood, sentence=sentence, evidence=evidence):
            answer = f"{click.style(word, fg=_COLORS[mood], bold=True)}: {sentence}"
            return "\n".join(filled(text, width, by) for text, by in ((answer, ""), (evidence, "  ")) if text)
        case Warnings() | Interrupted() | NextSteps():
            return _ending(block, width)
        case _:
            return _lines(block, width)


def _lines(block: Text | Items | Code | Stderr | Notes, width: int | None) -> str:
    match block:
        case Text(lines=lines):
            return _filled(lines, width)
        case Items(lines=lines):
            return _filled(lines, width, "  ")
        case Code(lines=lines, diff=True):
            return "\n".join(_of_diff(line) for line in lines)
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


def _of_diff(line: str) -> str:
    """Return a line of a diff, which is never wrapped, in the color of its sign."""
    color = None if line.startswith(("---", "+++")) else _SIGNS.get(f"{line[:1]} ")
    return click.style(f"  {line}", fg=color) if color else f"  {line}"


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
