"""The package of an operation, and the first line of a script whose variables differ between two environments."""

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from detaudit.environments.packages import PYTHON, PackagePair
from detaudit.model import OperationPackage
from detaudit.source.text import SourceText
from detaudit.trace import lines
from detaudit.trace.lines import Assigned, Differing

# The first variable that differs between two sides, and does not between two runs of one.


_TEXTS = ("str", "bytes", "type", "NoneType", "bool")
"""Types of what names a version or a path: it differs between environments, and no number follows from it."""


def first_variable(a: Path, b: Path, again: Path) -> Differing | None:
    """Return the first variable that differs between records of lines of two sides, None if none does.

    What differs between ``a`` and ``again``, two runs of one side, such as a time, does not count.
    """
    changing = {_key(one) for one in lines.assignments(lines.watched(a), lines.watched(again))}
    differing = lines.assignments(lines.watched(a), lines.watched(b))
    return min((one for one in differing if _counts(one) and _key(one) not in changing), key=_order, default=None)


def _key(one: Differing) -> tuple[str, int, str]:
    return one.one.file, one.one.line, one.one.name


def _order(one: Differing) -> tuple[int, int]:
    return one.order


def _counts(one: Differing) -> bool:
    """Whether both sides recorded a value, which is no text."""
    return all(
        side is not None and ":" in side.digest and side.digest.partition(":")[0] not in _TEXTS
        for side in (one.a, one.b)
    )


def types(path: Path, until: Assigned) -> dict[str, str]:
    """Return the types of the variables of a file that were recorded until one was assigned, by their names.

    A name that had several has none here.
    """
    known: dict[str, str] = {}
    for line in lines.watched(path):
        if isinstance(line, Assigned) and line.file == until.file and line.n <= until.n:
            kind = line.digest.partition(":")[0]
            known[line.name] = kind if known.get(line.name, kind) == kind else ""
    return known


# What a line calls, and the package that all of it belongs to.


_OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@",
}  # fmt: skip
_CLOSED = ("numpy", "torch")
"""Modules whose functions return values of their own types."""

_BUILTINS = "builtins"
_EXACT = frozenset(("float", "int", "len", "range", "list", "tuple", "zip", "enumerate", "abs", "min", "max", "sorted"))
"""Functions that compute nothing which could be rounded."""


@dataclass(frozen=True)
class Called:
    """An operation of a line, as people name it, and the module at the top that it belongs to, ``""`` if unknown."""

    name: str
    module: str


def calls(text: bytes, line: int, types: Mapping[str, str]) -> tuple[Called, ...]:
    """Return the operations of the statement at a line, in the order of the text; ``types`` has those of its names.

    There are none if Python cannot parse the text, or if the line computes nothing, as that of ``def`` does.
    """
    try:
        source = SourceText.of(text)
    except (SyntaxError, ValueError):
        return ()
    return tuple(dict.fromkeys(_Line(source, types).calls(line)))


class _Line:
    """Reads the operations of a line."""

    def __init__(self, source: SourceText, types: Mapping[str, str]) -> None:
        self._source, self._types = source, types
        nodes = [node for node in ast.walk(source.reader.tree) if isinstance(node, ast.Name)]
        self._assigned = {node.id for node in nodes if isinstance(node.ctx, ast.Store)}

    def calls(self, line: int) -> Iterator[Called]:
        for node in self._source.at(line):
            match node:
                case ast.Call():
                    called = self._called(node)
                    if called is not None:
                        yield called
                case ast.BinOp(op=operator) if type(operator) in _OPERATORS:
                    yield Called(f"operator {_OPERATORS[type(operator)]}", self._module(node))
                case ast.AugAssign(op=operator, target=target, value=value) if type(operator) in _OPERATORS:
                    yield Called(f"operator {_OPERATORS[type(operator)]}=", self._common(target, value))
                case _:
                    pass

    def _called(self, call: ast.Call) -> Called | None:
        """Return what is called, None for what cannot be the reason."""
        function = call.func
        full = self._source.full(function)
        root = ast.unparse(function).partition(".")[0]
        if full and root in self._source.imports and root not in self._assigned:
            return Called(full, full.partition(".")[0])
        if isinstance(function, ast.Name):
            if function.id in _EXACT:
                return None
            is_builtin = hasattr(builtins, function.id)
            return Called(function.id, self._common(*call.args) if is_builtin else "")
        if isinstance(function, ast.Attribute):
            module = self._module(function.value)
            kind = self._types.get(ast.unparse(function.value), "").rpartition(".")[2]
            return Called(f"{kind or module or ast.unparse(function.value)}.{function.attr}", module)
        return Called(ast.unparse(function), "")

    def _common(self, *nodes: ast.expr) -> str:
        """Return the module of the types of these values; numbers of Python take part in any."""
        modules = {self._module(node) for node in nodes}
        modules = modules - {_BUILTINS} or modules
        return modules.pop() if len(modules) == 1 else ""

    def _module(self, node: ast.expr) -> str:
        """Return the module at the top that the type of a value belongs to, ``""`` if it is unknown."""
        match node:
            case ast.Constant():
                return _BUILTINS
            case ast.Name() | ast.Attribute() if ast.unparse(node) in self._types:
                kind = self._types[ast.unparse(node)]
                return kind.partition(".")[0] if "." in kind else _BUILTINS * bool(kind)
            case ast.Attribute(value=value) | ast.Subscript(value=value):
                module = self._module(value)
                return module if module in _CLOSED else ""
            case ast.BinOp(left=left, right=right):
                return self._common(left, right)
            case ast.UnaryOp(operand=operand):
                return self._module(operand)
            case ast.Call():
                called = self._called(node)
                return called.module if called is not None and called.module in _CLOSED else ""
            case _:
                return ""


def class_module(texts: Iterable[bytes], name: str) -> str:
    """Return the module at the top that a class of this name comes from, by what the texts import and use.

    ``""`` if they define one of this name, if it is not among what they import, or comes from several modules.
    """
    modules = set()
    for text in texts:
        try:
            source = SourceText.of(text)
        except (SyntaxError, ValueError):
            return ""
        for node in ast.walk(source.reader.tree):
            if isinstance(node, ast.ClassDef) and node.name == name:
                return ""
            if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).partition(".")[0] in source.imports:
                full = source.full(node)
                modules |= {full.partition(".")[0]} if full.rpartition(".")[2] == name else set()
    return modules.pop() if len(modules) == 1 else ""


def package_of(called: tuple[Called, ...], pair: PackagePair) -> OperationPackage:
    """Return the package that all operations of a line belong to; none is named if there are several."""
    names = {pair.name_of(one.module) if one.module != _BUILTINS else PYTHON for one in called}
    if pair.a.version == pair.b.version:
        names = names - {PYTHON} or names
    if len(names) != 1 or names == {""}:
        return OperationPackage(calls=tuple(one.name for one in called))
    return named(names.pop(), pair)


def named(name: str, pair: PackagePair) -> OperationPackage:
    """Return a package with its versions, and with what it requires that differs."""
    requires = pair.required_changes(name) if name != PYTHON else ()
    return OperationPackage(name=name, versions=pair.versions(name), requires=requires)
