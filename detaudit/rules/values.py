"""Rules for values that no run repeats: uninitialized memory, and hashes."""

import ast

from detaudit.model import SourceKind
from detaudit.rules.rule import UNSAFE, Fix, Rule
from detaudit.source.randomness import hashed
from detaudit.source.text import SourceText, argument_of, last

_ARRAYS = {"numpy", "torch", "cupy", "jax.numpy"}
_ZEROS = {"empty": "zeros", "empty_like": "zeros_like"}
_UNINITIALIZED_ONLY = {"torch.empty_strided", "torch.empty_permuted"}

_NEW = {"numpy.ndarray", "torch.Tensor", "torch.FloatTensor"}
"""Classes whose instances have uninitialized memory if they are given a shape."""


class UninitializedMemory(Rule):
    """Fill new memory with zeros."""

    name = "uninitialized-memory"
    kinds = frozenset({SourceKind.UNINITIALIZED})
    message = "`empty` gives memory as it was left by whatever had it before."
    before = "mask = np.empty(10)\nmask[:5] = 1\n"
    after = "mask = np.zeros(10)\nmask[:5] = 1\n"
    never = (
        "It never changes an array of objects, which is filled with None, nor a call with arguments that `zeros` "
        "does not take."
    )

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        if not isinstance(node, ast.Call):
            return None
        module, _, name = page.full(node.func).rpartition(".")
        if page.full(node.func) in _NEW and isinstance(node.func, ast.Attribute):
            return Fix(page.renamed(node, "zeros")) if _is_shape(page, node) else None
        if last(node.func) == "new_empty":
            return Fix(page.renamed(node, "new_zeros"))
        if f"{module}.{name}" in _UNINITIALIZED_ONLY or last(node.func) == "new_empty_strided":
            return UNSAFE
        if module not in _ARRAYS or name not in _ZEROS or _is_of_objects(node):
            return None
        # zeros has no such argument
        if argument_of(node, "prototype") or (name == "empty" and argument_of(node, "memory_format")):
            return UNSAFE
        zeros = _ZEROS[name]
        if isinstance(node.func, ast.Attribute):
            return Fix(page.renamed(node, zeros))
        needed = page.imports.get(zeros) != f"{module}.{zeros}"
        return Fix(page.instead(node.func, zeros), (f"from {module} import {zeros}",) if needed else ())


def _is_shape(page: SourceText, call: ast.Call) -> bool:
    """Whether a call of one of _NEW is given nothing but a shape, and for NumPy a dtype."""
    if page.full(call.func) == "numpy.ndarray":
        return (
            0 < len(call.args) <= 2 and all(word.arg == "dtype" for word in call.keywords) and not _is_of_objects(call)
        )
    sizes = [isinstance(one, ast.Constant) and isinstance(one.value, int) for one in call.args]
    return not call.keywords and any(sizes) and (all(sizes) or len(sizes) > 1)


def _is_of_objects(call: ast.Call) -> bool:
    """Whether an array has the dtype object, which is filled with None."""
    kind = call.args[1] if len(call.args) > 1 else argument_of(call, "dtype")
    return (isinstance(kind, ast.Name) and kind.id == "object") or (
        isinstance(kind, ast.Constant) and kind.value in ("O", "object")
    )


class SaltedHash(Rule):
    """Replace hash() of a text by a checksum."""

    name = "salted-hash"
    kinds = frozenset({SourceKind.HASH})
    message = "Python salts the hashes of texts with a number that it draws for each process."
    before = "is_test = hash(name) % 10 == 0\n"
    after = "import zlib\nis_test = zlib.crc32(str(name).encode()) % 10 == 0\n"
    never = "It never changes `__hash__`, nor the hash of a set or of an object whose text has its address."

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        if not isinstance(node, ast.Call) or hashed(page.reader, node) is not SourceKind.HASH:
            return None
        needs = page.importing("zlib")
        for keyword in node.keywords:
            if keyword.arg == "key":
                return Fix(page.instead(keyword.value, "lambda item: zlib.crc32(str(item).encode())"), needs)
        match node.args:
            case [ast.JoinedStr() | ast.Constant(value=str()) as text]:
                data = f"{page.text(*page.span(text))}.encode()"
            case [ast.Constant(value=bytes()) as text]:
                data = page.text(*page.span(text))
            case [value] if not isinstance(value, ast.Starred | ast.Lambda) and not _has_address(page, value):
                data = f"str({page.text(*page.span(value))}).encode()"
            case _:
                return UNSAFE
        if _is_remainder(page, node):
            return Fix(page.instead(node, f"zlib.crc32({data})"), needs)
        # As many bits as a hash has, and a sign.
        digest = f"hashlib.blake2b({data}, digest_size=8).digest()"
        return Fix(page.instead(node, f'int.from_bytes({digest}, "little", signed=True)'), page.importing("hashlib"))


def _is_remainder(page: SourceText, node: ast.AST) -> bool:
    """Whether nothing but the remainder of a number is used, of which any number has one."""
    parent = page.reader.parent(node)
    return isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mod) and parent.left is node


def _has_address(page: SourceText, node: ast.expr) -> bool:
    """Whether the text of a value differs between runs, like the order of a set or the address of an object."""
    return (
        page.reader.is_set(node)
        or (isinstance(node, ast.Name) and node.id == "self")
        or (isinstance(node, ast.Call) and last(node.func) in ("object", "set", "frozenset"))
    )
