"""A report for a terminal, in lines that fit into its width."""

from collections.abc import Iterable, Sequence

import click

from detaudit.compat import assert_never
from detaudit.model import Report
from detaudit.report import marks
from detaudit.report.blocks import (
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
)
from detaudit.report.fill import command, filled
from detaudit.report.fit import drawn
from detaudit.report.layout import sections

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
        return click.style(cell, fg=_MARKS[marks.number(mark) % len(_MARKS)])
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
