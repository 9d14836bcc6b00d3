"""Fit a table into the columns of a terminal: wrap its texts, then leave out what matters least."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TypeAlias

from rich.cells import chop_cells

from detaudit.report.blocks import Table
from detaudit.report.fill import LEAST, filled, width_of

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


def without(table: Table, header: str) -> Table:
    """Return a table without one of its columns."""
    place = list(table.headers).index(header)
    headers, *rows = ([*row[:place], *row[place + 1 :]] for row in (table.headers, *table.rows))
    return replace(table, headers=headers, rows=rows)


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
