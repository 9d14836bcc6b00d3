"""A report for a terminal."""

from collections.abc import Iterable

import click

from detaudit.compat import assert_never
from detaudit.model import Report
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
    Stderr,
    Table,
    Text,
    Warnings,
)
from detaudit.report.layout import sections

_COLORS = {Mood.GOOD: "green", Mood.BAD: "red", Mood.UNCLEAR: "yellow"}


def render(report: Report) -> str:
    """See Reporter.render."""
    return "\n\n".join("\n".join(map(_drawn, section)) for section in sections(report)) + "\n"


def _drawn(block: Block) -> str:
    match block:
        case Heading(text=text):
            return click.style(text, bold=True)
        case Table(note=note):
            return "\n".join(filter(None, [block.drawn("simple"), note]))
        case Answer(word=word, mood=mood, sentence=sentence, evidence=evidence):
            answer = f"{click.style(word, fg=_COLORS[mood], bold=True)}: {sentence}"
            return f"{answer}\n  {evidence}" if evidence else answer
        case Warnings() | Interrupted() | NextSteps():
            return _ending(block)
        case _:
            return _lines(block)


def _lines(block: Text | Items | Code | Stderr | Notes) -> str:
    match block:
        case Text(lines=lines):
            return "\n".join(lines)
        case Items(lines=lines) | Code(lines=lines):
            return _indented(lines)
        case Stderr(caption=caption, lines=lines):
            return f"{caption}\n{_indented(lines, '  | ')}"
        case Notes(lines=lines):
            return "\n".join(click.style(line, dim=True) for line in lines)
        case _:
            assert_never(block)


def _indented(lines: Iterable[str], by: str = "  ") -> str:
    return "\n".join(f"{by}{line}" for line in lines)


def _ending(block: Warnings | Interrupted | NextSteps) -> str:
    match block:
        case Warnings(lines=lines):
            return "\n".join(f"{click.style('warning:', fg='yellow')} {line}" for line in lines)
        case Interrupted(text=text):
            return f"{click.style('interrupted', fg='yellow', bold=True)}: {text}"
        case NextSteps(steps=steps):
            return "\n".join(["next:", *(f"  # {comment}\n  {command}" for comment, command in steps)])
        case _:
            assert_never(block)
