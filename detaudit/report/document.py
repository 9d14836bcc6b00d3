"""The parts of a report for people. Each format draws them in its own way."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum, auto
from typing import Any, NamedTuple, TypeAlias, TypeVar

from detaudit.report.plain import row

# The parts of a report for people. Each format draws them in its own way.


class Mood(Enum):
    """Whether an answer is what the user hopes for."""

    GOOD = auto()
    BAD = auto()
    UNCLEAR = auto()


class Column(NamedTuple):
    """A column of a table. Numbers are aligned to the right, texts to the ``left``.

    In a narrow terminal columns are left out in the order of ``drop``, 0 for one that stays. A column with a
    ``comfort`` has texts that may be wrapped, to that width before others are left out.
    """

    title: str
    left: bool = False
    drop: int = 0
    comfort: int = 0


class Cell(str):
    """The text of a cell, whether it is what the user hopes for, and the number of the result that it shares."""

    mood: Mood | None
    mark: int | None

    def __new__(cls, text: str, mood: Mood | None = None, mark: int | None = None) -> "Cell":
        """Return a cell with this text."""
        cell = super().__new__(cls, text)
        cell.mood, cell.mark = mood, mark
        return cell

    def of(self, text: str) -> "Cell":
        """Return a cell like this one with another text."""
        return Cell(text, self.mood, self.mark)


# Columns that several tables have.

RUNS = Column("RUNS", drop=11)
STEPS = Column("STEPS", drop=2)
SUM_OF_WEIGHTS = Column("SUM OF WEIGHTS", drop=9)
FINAL_LOSS = Column("FINAL LOSS", drop=6)
DIGEST = Column("DIGEST", left=True, drop=10)
RANK, PART = Column("RANK"), Column("PART")
TIME = Column("TIME", drop=1)
FLAGS = Column("FLAGS", left=True, comfort=24)
DESCRIPTION = Column("DESCRIPTION", left=True, comfort=24)


@dataclass(frozen=True)
class Heading:
    """A line above what follows."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table, and a line below it."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    note: str = ""

    @property
    def headers(self) -> list[str]:
        """The titles of its columns."""
        return [column.title for column in self.columns]


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
    """Lines to be shown as they are, with their indents; ``diff``: their first character is a sign."""

    lines: Sequence[str]
    diff: bool = False


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
        return value.of(row(value)) if isinstance(value, Cell) else row(value)
    if isinstance(value, Column):
        return value._replace(title=row(value.title))
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def without(table: Table, column: Column) -> Table:
    """Return a table without one of its columns, as it is if it does not have it."""
    kept = [index for index, one in enumerate(table.columns) if one != column]
    columns = [table.columns[index] for index in kept]
    return replace(table, columns=columns, rows=[[cells[index] for index in kept] for cells in table.rows])
