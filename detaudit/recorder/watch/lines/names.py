"""Find the names whose value each line of a function may change, from its bytecode."""

from __future__ import annotations

import dis
import inspect
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import NamedTuple

    class Name(NamedTuple):
        """A name, or an attribute of the name ``of``. ``stored`` is true if the line assigns to it."""

        text: str
        of: str
        stored: bool
        in_globals: bool
else:
    from collections import namedtuple

    Name = namedtuple("Name", "text of stored in_globals")

_VERB = re.compile("LOAD|STORE")
_SCOPES = ("_NAME", "_FAST", "_GLOBAL", "_DEREF", "_CLASSDEREF")
_COPIES = ("COPY", "DUP_TOP")


class Lines:
    """The names of one code object, by line."""

    def __init__(self, code: CodeType) -> None:
        self.file = code.co_filename
        self.first = code.co_firstlineno
        self.returns = "" if code.co_name.startswith("<") else code.co_name + "()"
        self.held = code  # keeps the code alive, so that its id remains unique
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        self.arguments = [Name(name, "", True, False) for name in code.co_varnames[:count] if name[0] != "."]
        self._names = {} if _has_hidden_names(code) else _by_line(code)
        self._between: dict[tuple[int, int], list[Name]] = {}

    def between(self, done: int, coming: int) -> list[Name]:
        """Return the names to check after the line ``done`` and before the line ``coming``.

        They include the names that the coming line uses. This way, a change made through a different name is detected
        before this line, which did not cause it.
        """
        key = done, coming
        if key not in self._between:
            names = {(name.text, name.in_globals): name for name in self._names.get(coming, ()) if not name.stored}
            names.update({(name.text, name.in_globals): name for name in self._names.get(done, ())})
            self._between[key] = list(names.values())
        return self._between[key]


def _has_hidden_names(code: CodeType) -> bool:
    # In Python 3.12, reading the names of a class body would write to those of its comprehensions.
    return sys.version_info[:2] == (3, 12) and not code.co_flags & inspect.CO_OPTIMIZED and code.co_name != "<module>"


def _by_line(code: CodeType) -> dict[int, list[Name]]:
    starts = dict(dis.findlinestarts(code))
    found: dict[int, dict[tuple[str, bool], Name]] = {}
    line, before = code.co_firstlineno, None
    for instruction in dis.get_instructions(code):
        line = starts.get(instruction.offset) or line
        here = found.setdefault(line, {})
        names = _of_instruction(instruction, before, here)
        if code.co_name == "<module>":
            names = [name._replace(in_globals=True) for name in names]
        for name in names:
            key = name.text, name.in_globals
            if key not in here or name.stored:
                here[key] = name
        if names or instruction.opname not in _COPIES:
            before = names[-1] if names and not names[-1].stored else None
    return {line: list(names.values()) for line, names in found.items() if names}


def _of_instruction(
    instruction: dis.Instruction, before: Name | None, here: dict[tuple[str, bool], Name]
) -> list[Name]:
    operation, argument = instruction.opname, instruction.argval
    if operation in ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR"):
        stored = operation == "STORE_ATTR"
        if before is not None and not before.of:
            return [Name(before.text + "." + argument, before.text, stored, before.in_globals)]
        # Such as self.x += 1, which copies the object before it loads the attribute.
        return [n._replace(stored=True) for n in here.values() if stored and n.of and n.text == n.of + "." + argument]
    if not any([scope in operation for scope in _SCOPES]):
        return []
    arguments = argument if isinstance(argument, tuple) else (argument,)
    return [
        Name(name, "", verb == "STORE", "_GLOBAL" in operation)
        for verb, name in zip(_VERB.findall(operation), arguments)
        if isinstance(name, str) and not name.startswith((".", "__"))
    ]
