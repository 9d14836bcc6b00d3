"""A report as Markdown, for a pull request or a lab book."""

import re
from collections.abc import Iterable

from tabulate import tabulate

from detaudit.compat import assert_never
from detaudit.model import Report
from detaudit.report.document import (
    Answer,
    Block,
    Code,
    Heading,
    Interrupted,
    Items,
    NextSteps,
    Notes,
    Stderr,
    Table,
    Text,
    Warnings,
)
from detaudit.report.plain import row
from detaudit.report.sections import sections

_START = re.compile(r"^(\d{1,9}(?=[.)](?:\s|$)))?(#{1,6}(?=\s|$)|>|[*+-](?=\s|$)|[.)]|={2,}|-{2,}|~~~|\||\[)")
"""What makes a line more than a line of text: a heading, a quotation, an item, a table, a definition."""

_INSIDE = re.compile(r"<|(?<=\])\(")
"""How an HTML element begins, and the target of a link."""


def render(report: Report) -> str:
    """See Reporter.render."""
    command = _span(row(" ".join(report.command))) if report.command else ""
    blocks = [_drawn(block) for section in sections(report) for block in section]
    return "\n\n".join(filter(None, [f"## detaudit: {report.verdict}", command, *blocks])) + "\n"


def _drawn(block: Block) -> str:
    match block:
        case Heading(text=text):
            return f"### {prose(text)}"
        case Table(columns=columns, rows=rows, note=note):
            escaped = Table(columns, [[_cell(text) for text in cells] for cells in rows])
            return "\n\n".join(filter(None, [_table(escaped), prose(note)]))
        case Answer(word=word, sentence=sentence, evidence=evidence):
            return _paragraphs([f"**{word}**: {prose(sentence)}", prose(evidence)])
        case Warnings() | Interrupted() | NextSteps():
            return _ending(block)
        case _:
            return _lines(block)


def _table(table: Table) -> str:
    align = ["left" if column.left else "right" for column in table.columns]
    return tabulate(table.rows, table.headers, tablefmt="pipe", colalign=align, disable_numparse=True)


def _lines(block: Text | Items | Code | Stderr | Notes) -> str:
    match block:
        case Text(lines=lines) | Notes(lines=lines):
            return _paragraphs(prose(_capitalized(line)) for line in lines)
        case Items(lines=lines, code=code):
            return "\n".join(f"- {_span(line) if code else prose(line)}" for line in lines)
        case Code(lines=lines):
            return _fenced(lines)
        case Stderr(caption=caption, lines=lines):
            return f"{prose(_capitalized(caption))}\n\n{_fenced(lines)}"
        case _:
            assert_never(block)


def _ending(block: Warnings | Interrupted | NextSteps) -> str:
    match block:
        case Warnings(lines=lines):
            return _paragraphs(f"> **Warning:** {prose(line)}" for line in lines)
        case Interrupted(text=text):
            return f"**interrupted**: {text}"
        case NextSteps(steps=steps):
            lines = [line for comment, command in steps for line in (f"# {comment}", command)]
            return f"Next:\n\n{_fenced(lines, 'sh')}"
        case _:
            assert_never(block)


def _paragraphs(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)


def prose(text: str) -> str:
    """Return plain text that Markdown shows as it is, but for code between backticks."""
    return _START.sub(r"\1\\\2", _INSIDE.sub(r"\\\g<0>", text))


def _cell(text: str) -> str:
    return _INSIDE.sub(r"\\\g<0>", text).replace("|", r"\|")


def _span(text: str) -> str:
    """Return plain text as a span of code, between more backticks than it has in a row."""
    ticks = _ticks(text, 1)
    space = " " if "`" in text else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def _ticks(text: str, least: int) -> str:
    return "`" * max([least, *(len(ticks) + 1 for ticks in re.findall("`+", text) if len(ticks) >= least)])


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _fenced(lines: Iterable[str], language: str = "") -> str:
    lines = list(lines)
    ticks = _ticks("\n".join(lines), 3)
    return "\n".join([f"{ticks}{language}", *lines, ticks])
