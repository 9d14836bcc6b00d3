"""A report as Markdown, for a pull request or a lab book."""

import re
from collections.abc import Iterable

from detaudit.compat import assert_never
from detaudit.model import Report
from detaudit.report.blocks import (
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
from detaudit.report.layout import sections

_BULLET = re.compile(r"^([*+-]) ")


def render(report: Report) -> str:
    """See Reporter.render."""
    command = f"`{' '.join(report.command)}`" if report.command else ""
    blocks = [_drawn(block) for section in sections(report) for block in section]
    return "\n\n".join(filter(None, [f"## detaudit: {report.verdict}", command, *blocks])) + "\n"


def _drawn(block: Block) -> str:
    match block:
        case Heading(text=text):
            return f"### {text}"
        case Table(note=note):
            return _paragraphs([block.drawn("pipe"), note])
        case Answer(word=word, sentence=sentence, evidence=evidence):
            return _paragraphs([f"**{word}**: {sentence}", evidence])
        case Warnings() | Interrupted() | NextSteps():
            return _ending(block)
        case _:
            return _lines(block)


def _lines(block: Text | Items | Code | Stderr | Notes) -> str:
    match block:
        case Text(lines=lines) | Notes(lines=lines):
            return _paragraphs(_capitalized(line) for line in lines)
        case Items(lines=lines, code=code):
            return "\n".join(f"- `{line}`" if code else f"- {line}" for line in lines)
        case Code(lines=lines):
            return _fenced(lines)
        case Stderr(caption=caption, lines=lines):
            return f"{_capitalized(caption)}\n\n{_fenced(lines)}"
        case _:
            assert_never(block)


def _ending(block: Warnings | Interrupted | NextSteps) -> str:
    match block:
        case Warnings(lines=lines):
            return _paragraphs(f"> **Warning:** {line}" for line in lines)
        case Interrupted(text=text):
            return f"**interrupted**: {text}"
        case NextSteps(steps=steps):
            lines = [line for comment, command in steps for line in (f"# {comment}", command)]
            return f"Next:\n\n{_fenced(lines, 'sh')}"
        case _:
            assert_never(block)


def _paragraphs(texts: Iterable[str]) -> str:
    return "\n\n".join(_BULLET.sub(r"\\\1 ", text) for text in texts if text)


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _fenced(lines: Iterable[str], language: str = "") -> str:
    return "\n".join([f"```{language}", *lines, "```"])
