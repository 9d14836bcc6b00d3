"""Draw the pictures of docs/imports.md from the imports: ``python -m tests.draw_imports`` rewrites them.

An arrow that follows from others is left out, so that each picture shows the order of the rooms.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tests.test_structure import MODULES, PACKAGE, imported

ROOT = PACKAGE.parent
DOCUMENT = ROOT / "docs" / "imports.md"
GROUND = {"wire", "errors", "compat", "private", "redact", "__init__", "__main__", "__version__"}
"""Modules that everybody imports: they are in no picture."""

Graph = dict[str, set[str]]
Room = Callable[[tuple[str, ...]], str]


def top(parts: tuple[str, ...]) -> str:
    """Return the room of a module of the package, ``""`` for one that is in no picture."""
    return parts[0] if parts and parts[0] not in GROUND else ""


def room_in(folder: str) -> Room:
    """Return what tells the room of a module below a folder of the package: a folder in it, or the module itself."""

    def room(parts: tuple[str, ...]) -> str:
        return parts[1] if len(parts) > 1 and parts[0] == folder else ""

    return room


def graph(room: Room) -> Graph:
    """Return which rooms import which others."""
    found: Graph = {}
    for path in MODULES:
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        own = room(tuple(part for part in parts if part != "__init__"))
        if not own:
            continue
        others = {room(tuple(name.split(".")[1:])) for name in imported(path) if name.startswith("detaudit.")}
        found.setdefault(own, set()).update(others - {own, ""})
    return found


def reduced(full: Mapping[str, Iterable[str]]) -> Graph:
    """Return a graph without the arrows that follow from others."""

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        todo = list(full.get(start, ()))
        while todo:
            one = todo.pop()
            if one not in seen:
                seen.add(one)
                todo += full.get(one, ())
        return seen

    return {
        own: {one for one in others if not any(one in reach(other) for other in others if other != one)}
        for own, others in full.items()
    }


def mermaid(full: Graph) -> str:
    """Return a picture of a graph in Mermaid."""
    lines = ["```mermaid", "graph TD"]
    for own, others in sorted(reduced(full).items()):
        lines += [f"    {own} --> {other}" for other in sorted(others)] or [f"    {own}"]
    return "\n".join([*lines, "```"])


PICTURES = {
    "package": mermaid(graph(top)),
    "recorder": mermaid(graph(room_in("recorder"))),
}


def drawn(text: str) -> str:
    """Return the document with each picture between its markers drawn again."""
    for name, picture in PICTURES.items():
        begin, end = f"<!-- picture: {name} -->", "<!-- end -->"
        text = re.sub(
            f"({re.escape(begin)}\n).*?({re.escape(end)})",
            rf"\g<1>{picture}\n\g<2>",
            text,
            flags=re.DOTALL,
        )
    return text


def main(path: Path = DOCUMENT) -> None:
    """Draw the pictures of the document again."""
    path.write_text(drawn(path.read_text()))


if __name__ == "__main__":
    main()
