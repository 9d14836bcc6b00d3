"""Read from source code which texts an expression can have: ``f"no {name}"`` is ``no <name>``, without running it."""

import ast
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType

MOST = 16
"""The number of texts of an expression that are followed."""

DEEPEST = 3
"""The number of calls that are followed into the functions of a module."""

_NAMES = {"strerror": "reason", "errno": "reason"}


@dataclass(frozen=True)
class Module:
    """The source of a module, and what it defines."""

    path: Path
    tree: ast.Module
    made: ModuleType

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        """All functions and methods by name."""
        return {node.name: node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)}

    @cached_property
    def calls(self) -> list[tuple[ast.Call, ast.FunctionDef | None]]:
        """All calls, each with the innermost function that it is in."""
        around: dict[ast.AST, ast.FunctionDef] = {}
        for function in ast.walk(self.tree):  # outer ones come first
            if isinstance(function, ast.FunctionDef):
                around.update(dict.fromkeys(ast.walk(function), function))
        return [(node, around.get(node)) for node in ast.walk(self.tree) if isinstance(node, ast.Call)]


@dataclass(frozen=True)
class Scope:
    """Where an expression is: in a function of a module, some of whose parameters have known texts."""

    module: Module
    function: ast.FunctionDef | None = None
    bound: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    depth: int = 0

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters in their order, without ``self`` and ``cls``."""
        arguments = self.function.args if self.function else None
        named = [*arguments.args, *arguments.kwonlyargs] if arguments else []
        return [one.arg for one in named if one.arg not in ("self", "cls")]

    def call(self, function: ast.FunctionDef, call: ast.Call, module: Module | None = None) -> "Scope":
        """Return the scope within a function that is called here: its parameters have the texts of the arguments.

        One whose text only a run knows keeps its own name.
        """
        inner = Scope(module or self.module, function)
        given = [
            *zip(inner.parameters, call.args, strict=False),
            *((one.arg, one.value) for one in call.keywords if one.arg),
        ]
        found = {name: texts(value, self) for name, value in given}
        bound = {name: known for name, known in found.items() if any(map(is_known, known))}
        return replace(inner, bound={**inner.defaults, **bound}, depth=self.depth + 1)

    @property
    def defaults(self) -> dict[str, tuple[str, ...]]:
        """The texts of parameters that a call leaves out."""
        values = self.function.args.defaults if self.function else []
        names = self.parameters[len(self.parameters) - len(values) :]
        return {
            name: texts(value, Scope(self.module)) for name, value in zip(names, values, strict=True) if _is_text(value)
        }

    def assigned(self, name: str) -> list[ast.expr]:
        """Return the expressions that are assigned to a local variable."""
        nodes = ast.walk(self.function) if self.function else []
        return [
            node.value
            for node in nodes
            if isinstance(node, ast.Assign)
            and any(isinstance(one, ast.Name) and one.id == name for one in node.targets)
        ]


def texts(expression: ast.expr | None, scope: Scope) -> tuple[str, ...]:
    """Return the texts that an expression can have; ``<name>`` stands for what only a run knows."""
    return tuple(dict.fromkeys(itertools.islice(_texts(expression, scope), MOST)))


def is_known(text: str) -> bool:
    """Return whether a text has more than a placeholder and signs around it."""
    outside = "".join(part.rpartition(">")[2] for part in text.split("<"))
    return any(letter.isalpha() for letter in outside)


def _texts(expression: ast.expr | None, scope: Scope) -> Iterator[str]:
    match expression:
        case None:
            yield ""
        case ast.Constant(value=value):
            yield str(value)
        case ast.Name(id=name):
            yield from _named(name, scope)
        case ast.Call():
            yield from _called(expression, scope)
        case ast.JoinedStr(values=parts):
            yield from _product(parts, scope)
        case ast.FormattedValue(value=value, conversion=conversion):
            quote = "'" if conversion == ord("r") else ""
            yield from (f"{quote}{text}{quote}" for text in texts(value, scope))
        case _:
            yield from _chosen(expression, scope)


def _chosen(expression: ast.expr, scope: Scope) -> Iterator[str]:
    match expression:
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            yield from _product([left, right], scope)
        case ast.BinOp(op=ast.Mult()):  # " in x" * bool(x): a part that is often left out
            yield ""
        case ast.IfExp(body=body, orelse=other):
            yield from (*texts(body, scope), *texts(other, scope))
        case ast.BoolOp(values=values):
            first, *others = (texts(value, scope) for value in values)
            yield from first
            if any(map(is_known, first)):
                yield from (text for other in others for text in other if is_known(text))
        case _:
            yield _constant(expression, scope) or f"<{_word(expression)}>"


def _product(parts: Iterable[ast.expr], scope: Scope) -> Iterator[str]:
    return map("".join, itertools.product(*(texts(part, scope) for part in parts)))


def _named(name: str, scope: Scope) -> Iterable[str]:
    if name in scope.bound:
        return scope.bound[name]
    unknown = _constant(ast.Name(name), scope) or f"<{name.strip('_')}>"
    before = replace(scope, bound={**scope.bound, name: (unknown,)})  # as in x = x or y
    found = [text for value in scope.assigned(name) for text in texts(value, before)]
    return found if any(map(is_known, found)) else [unknown]


def _called(call: ast.Call, scope: Scope) -> Iterable[str]:
    match call.func:
        case ast.Name(id=name) if name in scope.module.functions and scope.depth < DEEPEST:
            function = scope.module.functions[name]
            inner = scope.call(function, call)
            returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
            found = [text for value in returned for text in texts(value, inner)]
            known = [text for text in found if is_known(text)]
            return known or (found if len(found) == 1 else [f"<{_word(call)}>"])
        case ast.Attribute(attr="get", value=ast.Name(id=name)) if isinstance(
            getattr(scope.module.made, name, 0), dict
        ):
            known = getattr(scope.module.made, name)
            return [*map(str, known.values()), *texts(call.args[-1], scope)]
        case ast.Attribute(attr="join") if isinstance(call.args[0], ast.Name):
            listed = _listed(call.args[0].id, scope)
            found = [text for value in listed for text in texts(value, scope) if is_known(text)]
            return [" ".join(found) or f"<{_word(call)}>"]
        case _:
            return [f"<{_word(call)}>"]


def _listed(name: str, scope: Scope) -> Iterator[ast.expr]:
    """Yield what is put into a local list."""
    for value in scope.assigned(name):
        for one in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
            yield from one.elts if isinstance(one, ast.List) else ()
    for node in ast.walk(scope.function) if scope.function else ():
        match node:
            case ast.Call(func=ast.Attribute(attr="append", value=ast.Name(id=found)), args=[value]) if found == name:
                yield value


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Name | ast.JoinedStr) or (
        isinstance(value, ast.Constant) and isinstance(value.value, str)
    )


def _constant(expression: ast.expr, scope: Scope) -> str:
    """Return the text or number that a module has under this name, ``""`` if there is none."""
    found: object = scope.module.made
    for name in ast.unparse(expression).split("."):
        found = getattr(found, name, None)
    return str(found) if isinstance(found, str | int) and not isinstance(found, bool) else ""


def _word(expression: ast.expr) -> str:
    """Return the name that says best what an expression is."""
    match expression:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return _NAMES.get(name, name.strip("_"))
        case ast.Call(args=[*_, last]):
            return _word(last)
        case ast.Call(func=ast.Attribute(value=value)) | ast.Subscript(value=value) | ast.Starred(value=value):
            return _word(value)
        case ast.BinOp(left=ast.Constant(), right=one) | ast.BinOp(left=one):
            return _word(one)
        case ast.BoolOp(values=[first, *_]):
            return _word(first)
        case ast.GeneratorExp(generators=[first, *_]) | ast.ListComp(generators=[first, *_]):
            return _word(first.iter)
        case _:
            return "…"
