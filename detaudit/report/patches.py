"""The changes of a unified diff, for formats that have their own words for them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_UNENDED = "\\"
"""A line of a diff that says of the one before that it has no line end."""


@dataclass(frozen=True)
class Replacement:
    """The ``old`` lines of a file from ``line`` on, with their ends, and the lines that replace them."""

    file: str
    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def replacements(diff: str) -> Iterator[Replacement]:
    """Yield the changes of a diff as ``git apply`` takes it, without the unchanged lines around them."""
    lines, file = diff.split("\n"), ""
    at = 0
    while at < len(lines):
        hunk = _HUNK.match(lines[at])
        if lines[at].startswith("+++ "):
            file = lines[at].removeprefix("+++ ").removeprefix("b/")
        at += 1
        if hunk is None:
            continue
        start, before, after = int(hunk[1]), int(hunk[2] or 1), int(hunk[4] or 1)
        body = list[tuple[str, str]]()
        while at < len(lines) and (before or after or lines[at].startswith(_UNENDED)):
            sign, text = lines[at][:1], lines[at][1:]
            at += 1
            if sign == _UNENDED:
                body[-1] = (body[-1][0], body[-1][1].removesuffix("\n"))
                continue
            body.append((sign, f"{text}\n"))
            before -= sign != "+"
            after -= sign != "-"
        yield from _changed(file, start + (hunk[2] == "0"), body)


def _changed(file: str, line: int, body: list[tuple[str, str]]) -> Iterator[Replacement]:
    """Yield each block of changed lines of a hunk that begins at a line."""
    old, new = list[str](), list[str]()
    for sign, text in [*body, (" ", "")]:
        if sign == "-":
            old.append(text)
        elif sign == "+":
            new.append(text)
        else:
            if old or new:
                yield Replacement(file, line, tuple(old), tuple(new))
            line += len(old) + 1
            old, new = [], []
