"""A source text with its syntax tree, edited by offsets, which keeps its comments and its formatting."""

import ast
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property

from detaudit.source.randomness import Reader, parsed

_LINE_END = re.compile(rb"\r\n|\r|\n")
_USUAL = {"np": "numpy", "tf": "tensorflow", "jnp": "jax.numpy"}
"""What short names of modules stand for if a text does not import them itself."""

Placed = ast.expr | ast.stmt | ast.keyword

TextEdit = tuple[int, int, str]
"""From one byte to another of the text in UTF-8, and what shall stand there."""


class SourceText:
    """A source text with its syntax tree. Raises SyntaxError or ValueError if Python cannot parse it."""

    def __init__(self, text: str) -> None:
        self._data = text.encode()
        self.reader = Reader(parsed(text))
        ends = list(_LINE_END.finditer(self._data))
        self._starts = [0, *(end.end() for end in ends)]
        stops = [*(end.start() for end in ends), len(self._data)]
        self.lines = [self._data[a:b].decode() for a, b in zip(self._starts, stops, strict=True)]

    @classmethod
    def of(cls, text: bytes | str) -> "SourceText":
        """Parse a file's text, or its bytes in the encoding that they declare."""
        if isinstance(text, bytes):
            encoding, _ = tokenize.detect_encoding(io.BytesIO(text).readline)
            text = text.decode(encoding)
        return cls(text.removeprefix("\ufeff"))

    def edited(self, edits: Iterable[TextEdit]) -> "SourceText":
        """Return the text with these edits, which must not overlap."""
        data = self._data
        for start, end, new in sorted(edits, reverse=True):
            data = data[:start] + new.encode() + data[end:]
        return SourceText(data.decode())

    def moved(self, line: int, edits: Iterable[TextEdit]) -> int:
        """Return the line number after these edits."""
        for start, end, _ in edits:
            above, below = bisect_right(self._starts, start), bisect_right(self._starts, end)
            if above < line:
                line = max(above, line - (below - above))
        return line

    def span(self, node: Placed) -> tuple[int, int]:
        """Return the start and end of a node."""
        end_line, end = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[end_line - 1] + end

    def whole_lines(self, node: ast.stmt) -> tuple[int, int]:
        """Return the start of the first line of a statement with its decorators, and of the line below it."""
        below = node.end_lineno or node.lineno
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        return self._starts[first - 1], self._starts[below] if below < len(self._starts) else len(self._data)

    def is_alone(self, node: ast.stmt) -> bool:
        """Whether a statement shares its lines with others, or is all that its block has."""
        parent = self.reader.parent(node)
        blocks = (getattr(parent, name, None) for name in ("body", "orelse", "finalbody"))
        block = next((one for one in blocks if isinstance(one, list) and node in one), [node])
        above, below = self.lines[node.lineno - 1][: node.col_offset], self.lines[(node.end_lineno or node.lineno) - 1]
        return len(block) == 1 or bool(above.strip()) or ";" in below

    def text(self, start: int, end: int) -> str:
        """Return the text between two offsets in bytes."""
        return self._data[start:end].decode()

    def at(self, line: int) -> list[ast.expr | ast.stmt]:
        """Return the nodes of the statements at a line, outermost first, without nested statements."""
        nodes = [node for statement in _at(self.reader.tree, line) for node in _own(statement)]
        placed: list[ast.expr | ast.stmt] = [node for node in nodes if isinstance(node, ast.expr | ast.stmt)]
        return sorted(placed, key=lambda node: (self.span(node)[0], -self.span(node)[1]))

    def is_placed(self, node: ast.AST) -> bool:
        """Whether the position of a node is right, which within an f-string it is not before Python 3.12."""
        if not isinstance(node, ast.expr):
            return True
        try:
            body = ast.parse(f"({self.text(*self.span(node))}\n)", mode="eval").body
        except (SyntaxError, UnicodeDecodeError):
            return False
        return bool(ast.dump(body) == ast.dump(node))

    @cached_property
    def imports(self) -> dict[str, str]:
        """The full dotted name of each imported name, and of names that are usual for modules."""
        return _USUAL | self._imported

    @cached_property
    def _imported(self) -> dict[str, str]:
        names = dict[str, str]()
        for node in ast.walk(self.reader.tree):
            if isinstance(node, ast.Import):
                names |= {
                    a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0] for a in node.names
                }
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        return names

    def full(self, node: ast.expr) -> str:
        """Return the full dotted name of an expression, ``""`` if it is not a name."""
        if isinstance(node, ast.Attribute):
            owner = self.full(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        return self.imports.get(node.id, node.id) if isinstance(node, ast.Name) else ""

    def name_of(self, module: str) -> str:
        """Return the name by which this text has a module, ``""`` if it does not import it."""
        return next((name for name, full in self._imported.items() if full == module), "")

    def importing(self, module: str) -> tuple[str, ...]:
        """Return the import by which a module has its own name, nothing if this text has it by that name."""
        return () if self._imported.get(module) == module else (f"import {module}",)

    def is_made_by(self, node: ast.expr, *modules: str, depth: int = 5) -> bool:
        """Whether an expression is an object that these modules make, maybe wrapped, as far as this text shows."""
        match node:
            case ast.Call(func=function, args=arguments):
                inner = [function.value] if isinstance(function, ast.Attribute) else []
                classes = [one for one in self.reader.tree.body if isinstance(one, ast.ClassDef)]
                bases = (base for one in classes if one.name == last(function) for base in one.bases)
                names = [self.full(one) for one in (function, *bases)]
                made = any(name.startswith(tuple(f"{module}." for module in modules)) for name in names)
                return made or any(self.is_made_by(one, *modules, depth=depth) for one in (*inner, *arguments))
            case ast.Name() | ast.Attribute() if depth:
                values = self.reader.values(node)
                return any(v is not None and self.is_made_by(v, *modules, depth=depth - 1) for v in values)
            case _:
                return False

    def around(self, node: ast.expr, before: str, after: str) -> tuple[TextEdit, ...]:
        """Return the edits that insert text before and after a node."""
        start, end = self.span(node)
        return (start, start, before), (end, end, after)

    def instead(self, node: ast.expr, new: str) -> tuple[TextEdit, ...]:
        """Return the edit that replaces a node."""
        return ((*self.span(node), new),)

    def difference(self, start: int, end: int, new: str) -> tuple[TextEdit, ...]:
        """Return the edit that makes the text between two offsets a new one, without what both have in common."""
        old = self.text(start, end)
        above = _common(old, new)
        below = _common(old[above:][::-1], new[above:][::-1])
        start += len(old[:above].encode())
        end -= len(old[len(old) - below :].encode())
        return ((start, end, new[above : len(new) - below]),)

    def renamed(self, call: ast.Call, name: str) -> tuple[TextEdit, ...]:
        """Return the edit that calls another method of the same object, or another function of the same module."""
        end = self.span(call.func)[1]
        return ((end - len(last(call.func)), end, name),)


def _common(a: str, b: str) -> int:
    """Return how many characters two texts begin with that are the same."""
    return next((n for n, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))


def last(node: ast.expr) -> str:
    """Return the last part of a dotted name, ``""`` if the expression is not a name."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def argument_of(call: ast.Call, *names: str) -> ast.expr | None:
    """Return the argument of a call with one of these names."""
    return next((keyword.value for keyword in call.keywords if keyword.arg in names), None)


def given_otherwise(call: ast.Call) -> bool:
    """Whether a call may have arguments that cannot be read here, such as ``*args``."""
    return any(keyword.arg is None for keyword in call.keywords)


def _at(tree: ast.Module, line: int) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            decorators = [one.lineno for one in getattr(node, "decorator_list", [])]
            if min([node.lineno, *decorators]) <= line <= (node.end_lineno or 0) and line <= _end(node):
                yield node


def _end(statement: ast.stmt) -> int:
    """Return the last line of a statement; for a compound statement, the last line of its header."""
    if not any(isinstance(node, ast.stmt) for child in ast.iter_child_nodes(statement) for node in ast.walk(child)):
        return statement.end_lineno or statement.lineno
    ends = [node.end_lineno or 0 for node in _own(statement) if isinstance(node, ast.expr | ast.arg)]
    return max([statement.lineno, *ends])


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        yield node
        todo += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
