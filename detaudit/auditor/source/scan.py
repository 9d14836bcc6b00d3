"""Reads a source text for what takes a set in order, computes with hashes or addresses, or asks for no seed."""

import ast
from collections.abc import Iterator

from detaudit.auditor.source.bindings import Reader, parsed

SET, HASH, ID, UNSEEDED, EMPTY = "set", "hash", "id", "unseeded", "empty"

NUMPY = {"RandomState", "SeedSequence", "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"}
"""Classes that cannot be wrapped in the process, because scripts ask isinstance. torch.Generator is another."""

_FRESH = {
    **{f"{module}.{name}": f"numpy.{name}" for module in ("np", "numpy") for name in ("empty", "empty_like")},
    **{name: name for name in ("torch.empty", "torch.empty_like", "torch.empty_strided")},
}
"""Calls that return memory as it was found, and their full names."""

Found = tuple[int, str, str]
"""The line, one of the five, and for UNSEEDED and EMPTY what is called."""


def in_text(text: bytes) -> tuple[Found, ...]:
    """Return what a source text does, by line, everything once. Raises SyntaxError."""
    return tuple(sorted(set(_found(Reader(parsed(text))))))


def _found(reader: Reader) -> Iterator[Found]:
    for taken in reader.sets_in_order():
        yield taken.lineno, SET, ""
    for node in ast.walk(reader.tree):
        if isinstance(node, ast.Call):
            if kind := hashed(reader, node):
                yield node.lineno, kind, ""
            yield from _unseeded(node)
            yield from _fresh(node)


def hashed(reader: Reader, call: ast.Call) -> str:
    """Return HASH or ID if a call computes with hashes or addresses, ``""`` if it does not."""
    inside = reader.scope(call)
    own = isinstance(inside, ast.FunctionDef) and inside.name in ("__hash__", "__eq__")
    if isinstance(call.func, ast.Name) and call.func.id == "hash" and not own:
        return HASH
    if isinstance(call.func, ast.Name) and call.func.id == "id" and _is_arithmetic(reader.parent(call)):
        return ID
    keys = [
        keyword.value.id for keyword in call.keywords if keyword.arg == "key" and isinstance(keyword.value, ast.Name)
    ]
    return next((key for key in keys if key in (HASH, ID)), "")


def _is_arithmetic(node: ast.AST) -> bool:
    text = isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
    return isinstance(node, ast.BinOp) and not text


def _unseeded(call: ast.Call) -> Iterator[Found]:
    given = (*call.args, *(keyword.value for keyword in call.keywords))
    if all(isinstance(argument, ast.Constant) and argument.value is None for argument in given):
        match call.func:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in NUMPY:
                yield call.lineno, UNSEEDED, name
            case ast.Attribute(attr="seed"):
                yield call.lineno, UNSEEDED, ast.unparse(call.func)
            case _:
                pass


def _fresh(call: ast.Call) -> Iterator[Found]:
    if isinstance(call.func, ast.Attribute):
        name = _FRESH.get(ast.unparse(call.func)) or ("torch.empty" if call.func.attr == "new_empty" else "")
        if name:
            yield call.lineno, EMPTY, name
