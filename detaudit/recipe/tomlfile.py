"""Find where a TOML file has a value: the parser of the standard library does not say.

Whole statements at the start of a TOML file are a TOML file, too. So the statement with a value is the one without
which the statements before it do not have the value, however its keys are written.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from detaudit.compat import tomllib

MOST_TRIES = 200
"""How often the start of a file is parsed: each line of the value that is looked for takes one, too."""

MOST_CHARACTERS = 2**17
"""Of a file that is searched."""


def place(text: str, keys: Sequence[str], *, of_key: bool = False) -> tuple[int, int] | None:
    """Return the line and the column, from 1, of the value at these keys, or ``of_key``.

    A value without a line of its own, such as an element of a list, has the place of the statement that it is in.
    Return None if the file does not have it, or is too long for a search.
    """
    lines = text.split("\n")
    found = _statement(lines, keys)
    if found is None:
        return None
    line = lines[found]
    own = list(re.finditer(rf"(?:^|(?<=[\s.{{,]))(['\"]?){re.escape(keys[-1])}\1\s*=\s*", line))
    if len(own) == 1 and not line.lstrip().startswith("["):
        return found + 1, 1 + (own[0].start() if of_key else own[0].end())
    return found + 1, 1 + len(line) - len(line.lstrip())


def _statement(lines: Sequence[str], keys: Sequence[str]) -> int | None:
    """Return the number of the line with which the statement begins that has a value at these keys."""
    before, through = 0, len(lines)  # statements without the value, and with it
    if sum(map(len, lines)) > MOST_CHARACTERS or not _has(_parsed(lines), keys):
        return None
    tries = MOST_TRIES
    while True:
        for number in _nearest(before + 1, through):
            if not tries:
                return None
            tries -= 1
            found = _parsed(lines[:number])
            if found is not None:
                break
        else:
            return before
        if _has(found, keys):
            through = number
        else:
            before = number


def _nearest(start: int, end: int) -> Iterator[int]:
    """Yield the numbers from ``start`` to before ``end``, those in the middle first."""
    middle = (start + end) // 2
    yield from sorted(range(start, end), key=lambda number: abs(number - middle))


def _parsed(lines: Sequence[str]) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = tomllib.loads("\n".join(lines))
    except (RecursionError, ValueError):  # which a TOMLDecodeError is
        return None
    return found


def _has(found: object, keys: Sequence[str]) -> bool:
    for key in keys:
        if not isinstance(found, Mapping) or key not in found:
            return False
        found = found[key]
    return True
