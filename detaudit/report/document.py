"""The parts of a report for people. Each format draws them in its own way."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum, auto
from typing import Any, TypeAlias, TypeVar

from detaudit.report.plain import row

# The parts of a report for people. Each format draws them in its own way.


LEFT = frozenset(
    {
        "AUDIT",
        "DESCRIPTION",
        "DEVICES",
        "DIGEST",
        "FIRST DIFFERENCE",
        "FLAG",
        "FLAGS",
        "GATE",
        "HOST",
        "MACHINE",
        "MATCHES CONTROL",
        "RECIPE",
        "RECORDING",
        "RESULT",
        "RESULTS",
        "RUNS MATCH",
        "SHAPE",
        "TRIAL",
        "TYPE",
        "USED",
        "VARIED",
    }
)
"""Columns that are aligned to the left; the others are numbers."""


class Mood(Enum):
    """Whether an answer is what the user hopes for."""

    GOOD = auto()
    BAD = auto()
    UNCLEAR = auto()


@dataclass(frozen=True)
class Heading:
    """A line above what follows."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table, and a line below it."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def is_left(self, header: str) -> bool:
        """Whether a column is aligned to the left."""
        return header in LEFT


@dataclass(frozen=True)
class Answer:
    """A verdict in one word, its sentence, and what it rests on."""

    word: str
    mood: Mood
    sentence: str
    evidence: str = ""


@dataclass(frozen=True)
class Text:
    """Lines of text."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Items:
    """Lines that belong to the line above them; ``code`` says that they quote code."""

    lines: Sequence[str]
    code: bool = False


@dataclass(frozen=True)
class Code:
    """Lines to be shown as they are, with their indents."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Stderr:
    """The last lines that a run wrote to stderr, below a caption."""

    caption: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Notes:
    """Lines of minor interest."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Warnings:
    """What casts doubt on the report."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Interrupted:
    """The report covers only a part of what was asked for."""

    text: str


@dataclass(frozen=True)
class NextSteps:
    """Commands, each with the comment above it."""

    steps: Sequence[tuple[str, str]]


Block: TypeAlias = Heading | Table | Answer | Text | Items | Code | Stderr | Notes | Warnings | Interrupted | NextSteps

Section: TypeAlias = list[Block]
"""Blocks that belong together."""


def section(*blocks: Block | None) -> Section:
    """Return these blocks as a section, without those that are empty."""
    return [block for block in blocks if block is not None and not _empty(block)]


def _empty(block: Block) -> bool:
    match block:
        case Heading() | Answer() | Interrupted():
            return False
        case Table(rows=rows):
            return not rows
        case NextSteps(steps=steps):
            return not steps
        case _:
            return not any(block.lines)


B = TypeVar("B", bound=Block)


def plain(block: B) -> B:
    """Return a block in which each text is one plain line, whatever a script wrote."""
    return replace(block, **{field.name: _plain(getattr(block, field.name)) for field in fields(block)})


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return row(value)
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def without(table: Table, header: str) -> Table:
    """Return a table without one of its columns."""
    place = list(table.headers).index(header)
    headers, *rows = ([*row[:place], *row[place + 1 :]] for row in (table.headers, *table.rows))
    return replace(table, headers=headers, rows=rows)
