"""Reads a source text for what takes a set in order, computes with hashes or addresses, or asks for no seed."""

import ast
import warnings
from collections.abc import Iterator

SET, HASH, ID, UNSEEDED, EMPTY = "set", "hash", "id", "unseeded", "empty"

_SETS = {"set", "frozenset"}
_SET_METHODS = {"union", "intersection", "difference", "symmetric_difference", "copy"}
_KEEP_ORDER = {"list", "tuple", "enumerate", "iter", "zip", "map", "filter", "deque"}
_KEEP_ORDER_METHODS = {"join", "fromkeys", "extend"}
_FORGET_ORDER = {"sorted", "set", "frozenset", "len", "min", "max", "any", "all", "Counter"}
_HANDS_ON = {"list", "tuple", "map", "filter"}
"""Calls that keep the elements and nothing else: within one of _FORGET_ORDER their order is forgotten too."""

NUMPY = {"RandomState", "SeedSequence", "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"}
"""Classes that cannot be wrapped in the process, because scripts ask isinstance. torch.Generator is another."""

_FRESH = {
    **{f"{module}.{name}": f"numpy.{name}" for module in ("np", "numpy") for name in ("empty", "empty_like")},
    **{name: name for name in ("torch.empty", "torch.empty_like", "torch.empty_strided")},
}
"""Calls that return memory as it was found, and their full names."""

_Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda

Found = tuple[int, str, str]
"""The line, one of the five, and for UNSEEDED and EMPTY what is called."""


def in_text(text: bytes) -> tuple[Found, ...]:
    """Return what a source text does, by line, everything once. Raises SyntaxError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the script's own invalid escapes
        tree = ast.parse(text)
    return tuple(sorted(set(_Reader(tree).found())))


class _Reader:
    """Knows every node's parent, and which names of a scope are only ever bound to sets."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self._bound: dict[ast.AST, dict[str, list[ast.expr | None]]] = {}
        self._sorted: set[tuple[ast.AST, str]] = set()
        for node in ast.walk(tree):
            self._bind(node)
        self._looked_up: set[tuple[ast.AST, str]] = set()

    def found(self) -> Iterator[Found]:
        """Yield what is there; see in_text."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.expr) and self._is_set(node) and self._in_order(node):
                yield node.lineno, SET, ""
            if isinstance(node, ast.Call):
                yield from self._hashes(node)
                yield from _unseeded(node)
                yield from _fresh(node)

    def _scope(self, node: ast.AST) -> ast.AST:
        node = self._parents.get(node, self._tree)
        while not isinstance(node, _Scope):
            node = self._parents[node]
        return node

    def _bind(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind_target(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                self._bind_target(target, value)
            case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
                self._bind_target(target, None)
            case ast.arg(arg=name):
                self._bind_name(self._scope(node), name, None)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="sort")):
                self._sorted.add((self._scope(node), name))
            case _:
                pass

    def _bind_target(self, target: ast.expr, value: ast.expr | None) -> None:
        match target:
            case ast.Name(id=name):
                self._bind_name(self._scope(target), name, value)
            case ast.Attribute(value=ast.Name()):  # self.names, in whichever method
                self._bind_name(self._tree, ast.unparse(target), value)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for element in elements:
                    self._bind_target(element, None)
            case _:
                pass

    def _bind_name(self, scope: ast.AST, name: str, value: ast.expr | None) -> None:
        self._bound.setdefault(scope, {}).setdefault(name, []).append(value)

    def _is_set(self, node: ast.expr) -> bool:
        match node:
            case ast.SetComp():
                return True
            case ast.Set(elts=elements):
                return not all(isinstance(e, ast.Constant) and isinstance(e.value, int | float) for e in elements)
            case ast.Call(func=ast.Name(id=name)):
                return name in _SETS and not _is_range(node)
            case ast.Call(func=ast.Attribute(value=value, attr=name)):
                return name in _SET_METHODS and self._is_set(value)
            case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.BitXor() | ast.Sub(), right=right):
                return any(self._is_set(side) or _is_view(side) for side in (left, right))
            case ast.Name(ctx=ast.Load()) | ast.Attribute(value=ast.Name(), ctx=ast.Load()):
                return self._is_name_of_set(node, ast.unparse(node))
            case _:
                return False

    def _is_name_of_set(self, node: ast.AST, name: str) -> bool:
        scope = self._scope(node)
        while name not in self._bound.get(scope, {}) and scope is not self._tree:
            scope = self._scope(scope)
        key, values = (scope, name), self._bound.get(scope, {}).get(name, [])
        if not values or key in self._looked_up:
            return False
        self._looked_up.add(key)  # a = a | b
        try:
            return all(value is not None and self._is_set(value) for value in values)
        finally:
            self._looked_up.discard(key)

    def _in_order(self, node: ast.expr) -> bool:
        """Whether the elements of a set are taken one by one here, and their order is not forgotten at once."""
        parent = self._parents[node]
        match parent:
            case ast.For(iter=taken):
                return taken is node
            case ast.comprehension(iter=taken):
                return taken is node and not self._forgotten(self._parents[parent])
            case ast.Starred():
                return not self._forgotten(self._parents[parent])
            case ast.Call(func=ast.Name(id=name)):
                return node is not parent.func and name in _KEEP_ORDER and not self._forgotten(parent)
            case ast.Call(func=ast.Attribute(attr=name)):
                return node is not parent.func and name in _KEEP_ORDER_METHODS
            case ast.Attribute(attr="pop"):
                return isinstance(self._parents[parent], ast.Call)
            case _:
                return False

    def _forgotten(self, node: ast.AST) -> bool:
        """Whether the order in which ``node`` holds its elements is of no consequence."""
        if isinstance(node, ast.SetComp | ast.Set):
            return True
        parent = self._parents[node]
        match parent:
            case ast.Call(func=ast.Name(id=name)) if name in _FORGET_ORDER:
                return True
            case ast.Call(func=ast.Name(id=name)) if name in _HANDS_ON:
                return self._forgotten(parent)
            case ast.comprehension():
                return self._forgotten(self._parents[parent])
            case ast.Assign(targets=[ast.Name(id=name)]):
                return (self._scope(parent), name) in self._sorted
            case ast.Compare(ops=[ast.In() | ast.NotIn()]):
                return True
            case _:
                return False

    def _hashes(self, call: ast.Call) -> Iterator[Found]:
        inside = self._scope(call)
        own = isinstance(inside, ast.FunctionDef) and inside.name in ("__hash__", "__eq__")
        if isinstance(call.func, ast.Name) and call.func.id == "hash" and not own:
            yield call.lineno, HASH, ""
        elif isinstance(call.func, ast.Name) and call.func.id == "id" and _is_arithmetic(self._parents[call]):
            yield call.lineno, ID, ""
        for keyword in call.keywords:
            if keyword.arg == "key" and isinstance(keyword.value, ast.Name) and keyword.value.id in ("hash", "id"):
                yield call.lineno, HASH if keyword.value.id == "hash" else ID, ""


def _is_view(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "items")


def _is_range(call: ast.Call) -> bool:
    return any(isinstance(a, ast.Call) and isinstance(a.func, ast.Name) and a.func.id == "range" for a in call.args)


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
