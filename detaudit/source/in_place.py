"""A line of the user's that does by hand what a flag does: advice to add it would be no news."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from detaudit.config.flags import SEED, Flag
from detaudit.source.randomness import MOST_BYTES
from detaudit.source.text import SourceText


def place_of(root: Path, files: Iterable[str], flag: Flag) -> str:
    """Return file and line of the first statement that makes the calls and the settings of a flag, ``""`` without one.

    ``files`` are relative to ``root`` or absolute. Only calls and settings count, and any seed is as good as another.
    """
    if not flag.is_line or not (flag.call or flag.set):
        return ""
    for file in files:
        line = _line(root / file, flag)
        if line:
            return f"{file}:{line}"
    return ""


def _line(path: Path, flag: Flag) -> int:
    """Return the line at which the last of all that the flag does is done, 0 if something is missing."""
    try:
        text = path.read_bytes()
        page = SourceText.of(text) if len(text) <= MOST_BYTES else None
    except (OSError, SyntaxError, ValueError, RecursionError):
        return 0
    if page is None:
        return 0
    done = dict(_settings(page))
    lines = [done.get((name, _seeded(arguments))) for name, arguments in flag.call.items()]
    lines += [done.get((name, repr(value))) for name, value in flag.set.items()]
    return max(line or 0 for line in lines) if all(lines) else 0


def _seeded(arguments: tuple[object, ...]) -> str:
    """Return the arguments of a call as text, ``SEED`` if one of them is a seed."""
    return SEED if SEED in arguments else repr(tuple(arguments))


def _settings(page: SourceText) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the function that each call calls, or the attribute that is set, with the constants, and the line."""
    for node in ast.walk(page.reader.tree):
        match node:
            case ast.Call(func=function, args=arguments, keywords=[]):
                if arguments:
                    yield (page.full(function), SEED), node.lineno
                if all(isinstance(one, ast.Constant) for one in arguments):
                    values = tuple(one.value for one in arguments if isinstance(one, ast.Constant))
                    yield (page.full(function), repr(values)), node.lineno
            case ast.Assign(targets=[ast.Attribute() as target], value=ast.Constant(value=value)):
                yield (page.full(target), repr(value)), node.lineno
            case _:
                pass
