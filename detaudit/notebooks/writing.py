"""Write changed cells into the file of a notebook, of which every other character stays as it is."""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]

from detaudit.notebooks.cells import LINE_END, PER_CELL, Cell, marker, read, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def parts(notebook: bytes, lines: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the lines of each cell, without their ends, from the lines of a script made of a notebook and edited."""
    cells, texts, start = read(notebook), [], 0
    bare = [line.rstrip("\r\n") for line in lines]
    starts = []
    for cell in cells:
        start = bare.index(marker(cell.number), start) + 1
        starts.append(start)
    for cell, first, end in zip(cells, starts, [*(one - 1 for one in starts[1:]), len(bare)]):
        padding = PER_CELL - 1 - len(cell.code)
        texts.append(tuple(bare[first : end - padding]))
    return texts


def sources(notebook: bytes, lines: Sequence[str]) -> list[tuple[str, ...]]:
    """Return what ``parts`` does, with the lines that only IPython reads as the notebook has them.

    Raises ValueError if one of those was edited.
    """
    return [tuple(_source(cell, after)) for cell, after in zip(read(notebook), parts(notebook, lines))]


def with_lines(notebook: bytes, lines: Sequence[str]) -> bytes:
    """Return the file of a notebook after its script was edited. Raises ValueError if a magic was edited."""
    edited = {
        cell.number: "\n".join(_source(cell, after))
        for cell, after in zip(read(notebook), parts(notebook, lines))
        if list(after) != cell.code
    }
    if not edited:
        return notebook
    text = notebook.decode()
    sources = [source for source, is_code in _sources(text) if is_code]
    ascii_only = text.isascii() and "\\u" in text
    changed = text
    for number, (start, end) in reversed([*enumerate(sources, 1)]):
        if number in edited:
            changed = changed[:start] + _as_json(text[start:end], edited[number], ascii_only) + changed[end:]
    return changed.encode()


def _source(cell: Cell, after: Sequence[str]) -> list[str]:
    """Return the lines of a cell whose Python was edited, in which the lines that only IPython reads stay."""
    from difflib import SequenceMatcher

    lines: list[str] = []
    for tag, a, b, c, d in SequenceMatcher(None, cell.code, after, autojunk=False).get_opcodes():
        if tag != "equal" and cell.code[a:b] != cell.lines[a:b]:
            raise ValueError("a line that only IPython reads was edited")
        lines += cell.lines[a:b] if tag == "equal" else after[c:d]
    return lines


def _as_json(old: str, source: str, ascii_only: bool) -> str:
    """Return a source as JSON, laid out as it was: one text, or a list with a line in each element."""
    before = json.loads(old)
    joined = "".join(before) if isinstance(before, list) else before
    end = next(iter(LINE_END.findall(joined)), "\n")
    source = source.replace("\n", end)
    if not isinstance(before, list):
        return json.dumps(source, ensure_ascii=ascii_only)
    lines = (
        source.splitlines(keepends=True) if end == "\n" and source.isascii() else re.findall(r"[^\n]*\n|[^\n]+", source)
    )
    opening = _SPACE.match(old, 1)
    first = opening.end() if opening else 1
    _, after = _DECODER.raw_decode(old, first)
    between = ", " if len(before) < 2 and "\n" not in old[:first] else "," + old[1:first]
    if len(before) > 1:
        between = old[after : _after_comma(old, after)]
    closing = old[len(old[:-1].rstrip()) :]
    return old[:first] + between.join(json.dumps(line, ensure_ascii=ascii_only) for line in lines) + closing


def _after_comma(text: str, start: int) -> int:
    comma = text.index(",", start)
    return _skip(text, comma + 1)


def _skip(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _sources(text: str) -> Iterator[tuple[tuple[int, int], bool]]:
    """Yield where the source of each cell is in the text of a notebook, and whether it is one with code."""
    start = _skip(text, 1 if text.startswith("\ufeff") else 0)
    for key, value, _ in _members(text, start):
        if key == "cells":
            for cell in _elements(text, value):
                places = {name: (a, b) for name, a, b in _members(text, cell)}
                a, b = places.get("source", (cell, cell))
                kind = places.get("cell_type", (cell, cell))
                is_code = text[kind[0] : kind[1]] == '"code"' and a < b
                parsed = {"source": json.loads(text[a:b])} if a < b else {}
                yield (a, b), is_code and bool(text_of(parsed).strip())


def _members(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Yield the keys of the object that begins here, each with the start and the end of its value."""
    at = _skip(text, start + 1)
    while text[at] != "}":
        key, at = scanstring(text, at + 1, True)
        value = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, value)
        yield key, value, end
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


def _elements(text: str, start: int) -> Iterator[int]:
    """Yield where each element of the list that begins here begins."""
    at = _skip(text, start + 1)
    while text[at] != "]":
        yield at
        _, end = _DECODER.raw_decode(text, at)
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
