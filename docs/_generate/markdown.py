"""Tables and lines of generated Markdown."""

import re
from collections.abc import Iterable, Sequence


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. Its cells are Markdown, in which a ``|`` is escaped and a line break is a space."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def code(text: str) -> str:
    """Return a text as code, ``""`` for an empty one."""
    fence = "``" if "`" in text else "`"
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}" if text else ""


def codes(texts: Iterable[str]) -> str:
    """Return texts as code, with commas between them."""
    return ", ".join(map(code, texts))


def source(text: str) -> str:
    """Return where a fact comes from: each address in it becomes a link with the name of its host."""
    return re.sub(
        r"https?://([^/\s]+)\S*[^\s,.;)]", lambda found: f"[{found[1].removeprefix('www.')}]({found[0]})", text
    )


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")
