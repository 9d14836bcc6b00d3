"""Find code that iterates over a set, computes with hashes or addresses, passes no seed, or reads new memory."""

import ast
from collections.abc import Iterator

from detaudit.auditor.source.bindings import Reader, parsed
from detaudit.model import SourceKind

SET, HASH, ID = SourceKind.SET_ORDER, SourceKind.HASH, SourceKind.ADDRESS
UNSEEDED, UNINITIALIZED = SourceKind.UNSEEDED, SourceKind.UNINITIALIZED

NUMPY = {"RandomState", "SeedSequence", "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"}
"""Classes that cannot be wrapped in the process, because scripts ask isinstance. torch.Generator is another."""

_MODULES = {
    **{name: name for name in ("random", "numpy", "torch", "tensorflow", "keras")},
    "np": "numpy",
    "tf": "tensorflow",
}
"""Modules with a function ``seed``, as scripts name them, and their full names."""

_UNINITIALIZED = {
    **{f"{module}.{name}": f"numpy.{name}" for module in ("np", "numpy") for name in ("empty", "empty_like")},
    **{name: name for name in ("torch.empty", "torch.empty_like", "torch.empty_strided")},
}
"""Calls that return uninitialized memory, and their full names."""

OF_TEXTS = "str"
"""What is said of a set that holds nothing but texts, whose order depends on no address."""

_BUILTINS = {"hash": HASH, "id": ID}

Found = tuple[int, SourceKind, str]
"""The line, one of the five kinds, and for UNSEEDED and UNINITIALIZED what is called, for a set OF_TEXTS or nothing."""


def in_text(text: bytes) -> tuple[Found, ...]:
    """Return what a source text does, by line, without duplicates. Raises SyntaxError."""
    return tuple(sorted(set(_found(Reader(parsed(text))))))


def _found(reader: Reader) -> Iterator[Found]:
    for taken in reader.sets_in_order():
        yield taken.lineno, SET, OF_TEXTS if reader.holds_texts(taken) else ""
    for node in ast.walk(reader.tree):
        if isinstance(node, ast.Call):
            if kind := hashed(reader, node):
                yield node.lineno, kind, ""
            yield from _unseeded(node)
            yield from _uninitialized(node)


def hashed(reader: Reader, call: ast.Call) -> SourceKind | None:
    """Return HASH or ID if a call computes with hashes or addresses, None if it does not."""
    inside = reader.scope(call)
    own = isinstance(inside, ast.FunctionDef) and inside.name in ("__hash__", "__eq__")
    if isinstance(call.func, ast.Name) and call.func.id == "hash" and not own:
        return HASH
    if isinstance(call.func, ast.Name) and call.func.id == "id" and _is_arithmetic(reader.parent(call)):
        return ID
    keys = [
        keyword.value.id for keyword in call.keywords if keyword.arg == "key" and isinstance(keyword.value, ast.Name)
    ]
    return next((_BUILTINS[key] for key in keys if key in _BUILTINS), None)


def _is_arithmetic(node: ast.AST) -> bool:
    text = isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
    return isinstance(node, ast.BinOp) and not text


def _unseeded(call: ast.Call) -> Iterator[Found]:
    given = (*call.args, *(keyword.value for keyword in call.keywords))
    if all(isinstance(argument, ast.Constant) and argument.value is None for argument in given):
        match call.func:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in NUMPY:
                yield call.lineno, UNSEEDED, name
            case ast.Attribute(attr="seed", value=owner):
                yield call.lineno, UNSEEDED, _seeding(ast.unparse(owner))
            case _:
                pass


def _seeding(owner: str) -> str:
    """Return the full name of a function ``seed``: on any object that is not a module, it is a generator's method."""
    first, *parts = owner.split(".")
    is_module = first in _MODULES and all(part.isidentifier() for part in parts)
    return ".".join([_MODULES[first], *parts, "seed"]) if is_module else "Generator.seed"


def _uninitialized(call: ast.Call) -> Iterator[Found]:
    if isinstance(call.func, ast.Attribute):
        name = _UNINITIALIZED.get(ast.unparse(call.func)) or ("torch.empty" if call.func.attr == "new_empty" else "")
        if name:
            yield call.lineno, UNINITIALIZED, name
