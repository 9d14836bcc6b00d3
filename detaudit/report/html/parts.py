"""The parts of a page: each has a heading, and a template that draws its data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from detaudit.report.blocks import Mood, Section

MOODS = {Mood.GOOD: "same", Mood.BAD: "diff", Mood.UNCLEAR: "unk"}
"""The classes that color what has a mood."""


@dataclass(frozen=True)
class Part:
    """A part of a page: ``template`` draws ``data``, below the heading ``title`` and what it is ``about``.

    A ``folded`` one shows its heading until it is opened.
    """

    id: str
    title: str
    template: str
    data: Any
    about: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Page:
    """A whole page; ``headline`` is the answer in one sentence, ``lede`` what it rests on.

    The ``overview`` follows, then ``why`` it is so, beside the next steps. ``links`` are the navigation.
    """

    kind: str
    title: str
    headline: str
    mood: str
    facts: Sequence[str]
    lede: Sequence[str]
    parts: Sequence[Part]
    warnings: Sequence[str] = ()
    interrupted: str = ""
    next_steps: Sequence[tuple[str, str]] = ()
    environment: Sequence[tuple[str, str]] = ()
    command: str = ""
    overview: Part | None = None
    why: Part | None = None
    links: Sequence[tuple[str, str]] = ()


def blocks(name: str, title: str, sections: Sequence[Section]) -> list[Part]:
    """Return a part that shows sections of a report as they are; none if there are none."""
    return [Part(name, title, "blocks.html", sections)] if any(sections) else []
