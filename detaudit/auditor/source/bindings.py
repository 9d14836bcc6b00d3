"""Find out what names are bound to, which of them are sets, and whether the order of a set is used."""

import ast
import warnings
from collections.abc import Iterator

_SETS = {"set", "frozenset"}
_SET_METHODS = {"union", "intersection", "difference", "symmetric_difference", "copy"}
_KEEP_ORDER = {"list", "tuple", "enumerate", "iter", "zip", "map", "filter", "deque"}
_KEEP_ORDER_METHODS = {"join", "fromkeys", "extend"}
_FORGET_ORDER = {"sorted", "set", "frozenset", "len", "min", "max", "any", "all", "Counter"}
_HANDS_ON = {"list", "tuple", "map", "filter"}
"""Calls that keep the elements and nothing else: within one of _FORGET_ORDER their order is forgotten too."""

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


def parsed(text: bytes | str) -> ast.Module:
    """Return the syntax tree of a source text without Python's warnings. Raises SyntaxError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about invalid escapes in the script
        return ast.parse(text)


class Reader:
    """Knows every node's parent, and which names of a scope are bound to nothing but sets."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self._parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self._bound: dict[ast.AST, dict[str, list[ast.expr | None]]] = {}
        self._sorted: set[tuple[ast.AST, str]] = set()
        for node in ast.walk(tree):
            self._bind(node)
        self._looked_up: set[tuple[ast.AST, str]] = set()

    def parent(self, node: ast.AST) -> ast.AST:
        """Return the parent of a node, the module for the module itself."""
        return self._parents.get(node, self.tree)

    def sets_in_order(self) -> Iterator[ast.expr]:
        """Yield each set whose order is used."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.expr) and self.is_taken_set(node):
                yield node

    def is_taken_set(self, node: ast.expr) -> bool:
        """Whether this is a set that is iterated, by something that depends on the order."""
        return self.is_set(node) and self._in_order(node)

    def values(self, node: ast.expr) -> list[ast.expr | None]:
        """Return everything that a name is bound to in this scope; None for a binding without an expression."""
        return self._bindings(node)[1]

    def scope(self, node: ast.AST) -> ast.AST:
        """Return the innermost function, class or module around a node."""
        node = self._parents.get(node, self.tree)
        while not isinstance(node, Scope):
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
                self._bind_name(self.scope(node), name, None)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="sort")):
                self._sorted.add((self.scope(node), name))
            case _:
                pass

    def _bind_target(self, target: ast.expr, value: ast.expr | None) -> None:
        match target:
            case ast.Name(id=name):
                self._bind_name(self.scope(target), name, value)
            case ast.Attribute(value=ast.Name()):  # self.names, in any method
                self._bind_name(self.tree, ast.unparse(target), value)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for element in elements:
                    self._bind_target(element, None)
            case _:
                pass

    def _bind_name(self, scope: ast.AST, name: str, value: ast.expr | None) -> None:
        self._bound.setdefault(scope, {}).setdefault(name, []).append(value)

    def is_set(self, node: ast.expr) -> bool:
        """Whether an expression is a set. Sets of numbers do not count: their order is the same in every run."""
        match node:
            case ast.SetComp():
                return True
            case ast.Set(elts=elements):
                return not all(isinstance(e, ast.Constant) and isinstance(e.value, int | float) for e in elements)
            case ast.Call(func=ast.Name(id=name)):
                return name in _SETS and not _is_range(node)
            case ast.Call(func=ast.Attribute(value=value, attr=name)):
                return name in _SET_METHODS and self.is_set(value)
            case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.BitXor() | ast.Sub(), right=right):
                return any(self.is_set(side) or _is_view(side) for side in (left, right))
            case ast.Name(ctx=ast.Load()) | ast.Attribute(value=ast.Name(), ctx=ast.Load()):
                return self._is_name_of_set(node)
            case _:
                return False

    def holds_texts(self, node: ast.expr) -> bool:
        """Whether the code shows that a set, or what one is made of, holds nothing but texts."""
        match node:
            case ast.Set(elts=elements) | ast.List(elts=elements) | ast.Tuple(elts=elements):
                return bool(elements) and all(self._is_text(element) for element in elements)
            case ast.SetComp(elt=element) | ast.GeneratorExp(elt=element) | ast.ListComp(elt=element):
                return self._is_text(element)
            case ast.Call(func=ast.Name(id=name), args=[given]) if name in _SETS:
                return self._is_text(given) or self.holds_texts(given)
            case ast.Call(func=ast.Attribute(attr=name)) if name in ("split", "splitlines"):
                return True
            case ast.BinOp(left=left, right=right):
                return self.holds_texts(left) and self.holds_texts(right)
            case ast.Name(ctx=ast.Load()):
                key, values = self._bindings(node)
                if not values or key in self._looked_up:
                    return False
                self._looked_up.add(key)
                try:
                    return all(value is not None and self.holds_texts(value) for value in values)
                finally:
                    self._looked_up.discard(key)
            case _:
                return False

    def _is_text(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str)
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        return isinstance(node, ast.JoinedStr) or (is_call and ast.unparse(node).startswith("str("))

    def _bindings(self, node: ast.expr) -> tuple[tuple[ast.AST, str], list[ast.expr | None]]:
        name, scope = ast.unparse(node), self.scope(node)
        while name not in self._bound.get(scope, {}) and scope is not self.tree:
            scope = self.scope(scope)
        return (scope, name), self._bound.get(scope, {}).get(name, [])

    def _is_name_of_set(self, node: ast.expr) -> bool:
        key, values = self._bindings(node)
        if not values or key in self._looked_up:
            return False
        self._looked_up.add(key)  # a = a | b
        try:
            return all(value is not None and self.is_set(value) for value in values)
        finally:
            self._looked_up.discard(key)

    def _in_order(self, node: ast.expr) -> bool:
        parent = self._parents[node]
        match parent:
            case ast.For(iter=taken):
                return taken is node
            case ast.comprehension(iter=taken):
                return taken is node and not self.forgotten(self._parents[parent])
            case ast.Starred():
                return not self.forgotten(self._parents[parent])
            case ast.Call(func=ast.Name(id=name)):
                return node is not parent.func and name in _KEEP_ORDER and not self.forgotten(parent)
            case ast.Call(func=ast.Attribute(attr=name)):
                return node is not parent.func and name in _KEEP_ORDER_METHODS
            case ast.Attribute(attr="pop"):
                return isinstance(self._parents[parent], ast.Call)
            case _:
                return False

    def forgotten(self, node: ast.AST) -> bool:
        """Whether the order of the elements in ``node`` has no effect."""
        if isinstance(node, ast.SetComp | ast.Set):
            return True
        parent = self._parents[node]
        match parent:
            case ast.Call(func=ast.Name(id=name)) if name in _FORGET_ORDER:
                return True
            case ast.Call(func=ast.Name(id=name)) if name in _HANDS_ON:
                return self.forgotten(parent)
            case ast.comprehension():
                return self.forgotten(self._parents[parent])
            case ast.Assign(targets=[ast.Name(id=name)]):
                return (self.scope(parent), name) in self._sorted
            case ast.Compare(ops=[ast.In() | ast.NotIn()]):
                return True
            case _:
                return False


def _is_view(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "items")


def _is_range(call: ast.Call) -> bool:
    return any(isinstance(a, ast.Call) and isinstance(a.func, ast.Name) and a.func.id == "range" for a in call.args)
