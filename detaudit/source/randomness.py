"""Lines that introduce randomness, read in the user's code."""

import ast
import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from detaudit.model import Source, SourceKind, SourceMatch
from detaudit.notebooks.cells import code_of

# Find out what names are bound to, which of them are sets, and whether the order of a set is used.


_SETS = {"set", "frozenset"}
_SET_METHODS = {"union", "intersection", "difference", "symmetric_difference", "copy"}
_KEEP_ORDER = {"list", "tuple", "enumerate", "iter", "zip", "map", "filter", "deque"}
_KEEP_ORDER_METHODS = {"join", "fromkeys", "extend"}
_BY_KEY = {"sorted", "min", "max"}
_FORGET_ORDER = {"sorted", "set", "frozenset", "len", "min", "max", "any", "all", "Counter"}
_HANDS_ON = {"list", "tuple", "map", "filter"}
"""Calls that keep the elements and nothing else: within one of _FORGET_ORDER their order is forgotten too."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
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
        self._loads: dict[str, list[ast.Name | ast.Attribute]] = {}
        self._functions: dict[str, list[ast.FunctionDef]] = {}
        self._global = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
        self._rebound: dict[ast.AST, set[str]] = {}
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

    def is_taken_set(self, node: ast.expr, names: Collection[str] = ()) -> bool:
        """Whether this is a set that is iterated, by something that depends on the order.

        ``names`` are those of variables that are sets, whatever the code shows.
        """
        named = bool(names) and isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in names
        return (named or self.is_set(node)) and self._in_order(node)

    def values(self, node: ast.expr) -> list[ast.expr | None]:
        """Return everything that a name may be bound to here; None for a binding without an expression.

        That is, of a parameter, what all calls of its function pass, if the file shows that.
        """
        return self._bindings(node)[1]

    def uses(self, function: Function) -> list[ast.expr]:
        """Return where a function is used; of a method, where any of this name is."""
        method = isinstance(self.parent(function), ast.ClassDef)
        return [node for node in self._loads.get(function.name, ()) if method or isinstance(node, ast.Name)]

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
            case ast.withitem(optional_vars=ast.expr() as target):
                self._bind_target(target, None)
            case ast.arg(arg=name) | ast.ExceptHandler(name=str() as name):
                self._bind_name(self.scope(node), name, None)
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                self._loads.setdefault(name, []).append(node)
            case ast.FunctionDef(name=name) if self.scope(node) is self.tree:
                self._functions.setdefault(name, []).append(node)
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
            case ast.Tuple(elts=[done, pending]) if (waits := waiting(value)) is not None:
                self._bind_target(done, waits)
                self._bind_target(pending, waits if len(waits.args) + len(waits.keywords) > 1 else None)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
                known = len(parts) == len(elements) and not any(isinstance(e, ast.Starred) for e in (*elements, *parts))
                for element, part in zip(elements, parts if known else [None] * len(elements), strict=True):
                    self._bind_target(element, part)
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
                sets = (name in _SETS and not _is_range(node)) or waiting(node) is not None
                return sets or self._returns_sets(name)
            case ast.Call(func=ast.Attribute(value=value, attr=name)):
                return (name in _SET_METHODS and self.is_set(value)) or waiting(node) is not None
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
            case ast.Call(func=ast.Name(id=name), args=[argument]) if name in _SETS:
                return self._is_text(argument) or self.holds_texts(argument)
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
        values = self._bound.get(scope, {}).get(name, [])
        if len(values) > 1 and isinstance(node, ast.Name) and self.scope(node) is scope:
            last = self._bound_last(node, scope)
            values = [last] if last is not None else values
        return (scope, name), self._passed(scope, name) if values == [None] else values

    def _bound_last(self, name: ast.Name, scope: ast.AST) -> ast.expr | None:
        """Return what a name was bound to by an assignment that always comes before, with none that may be between."""
        if name.id in self._global:
            return None
        child: ast.AST = name
        while child is not scope:
            parent = self._parents[child]
            unsure = parent.test if isinstance(parent, ast.If) else parent if parent is not scope else None
            if unsure is not None and name.id in self._names_bound_in(unsure):  # a loop, a try, a with, a comprehension
                return None
            blocks = [getattr(parent, block, None) for block in ("body", "orelse")]
            before = next((one[: one.index(child)] for one in blocks if isinstance(one, list) and child in one), [])
            last = next((one for one in reversed(before) if name.id in self._names_bound_in(one)), None)
            if isinstance(last, ast.Assign) and [ast.unparse(one) for one in last.targets] == [name.id]:
                return last.value
            if last is not None:
                return None
            child = parent
        return None

    def _names_bound_in(self, node: ast.AST) -> set[str]:
        """Return the names that something in a node binds or deletes, looked up once."""
        if node not in self._rebound:
            names = self._rebound[node] = set()
            for one in ast.walk(node):
                if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
                    names.add(one.id)
                elif isinstance(one, ast.alias):
                    names.update({one.name, one.asname or one.name})
                else:
                    names.add(getattr(one, "name", None) or "")
        return self._rebound[node]

    def _passed(self, function: ast.AST, name: str) -> list[ast.expr | None]:
        """Return what each call of a function at the top of a file passes to a parameter; None for what is unknown."""
        if not isinstance(function, Function) or self.scope(function) is not self.tree:
            return [None]
        parameters = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        uses = self.uses(function)
        calls = [call for use in uses if isinstance(call := self.parent(use), ast.Call) and call.func is use]
        if name not in (*parameters, *(one.arg for one in function.args.kwonlyargs)) or len(calls) < len(uses):
            return [None]
        arguments = [one for call in calls for one in (*call.args, *call.keywords)]
        if any(isinstance(one, ast.Starred) or getattr(one, "arg", "") is None for one in arguments):
            return [None]  # *args, **kwargs
        at, default = parameters.index(name) if name in parameters else None, defaults(function.args).get(name)
        return [_passed_by(call, at, name) or default for call in calls] or [None]

    def _returns_sets(self, name: str) -> bool:
        """Whether a name is that of one function at the top of the file, which returns nothing but sets."""
        functions = self._functions.get(name, ())
        if len(functions) != 1:
            return False
        nodes = (node for node in ast.walk(functions[0]) if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom))
        values = [node.value if isinstance(node, ast.Return) else None for node in nodes]
        return self._are_sets((functions[0], ""), values)

    def _is_name_of_set(self, node: ast.expr) -> bool:
        return self._are_sets(*self._bindings(node))

    def _are_sets(self, key: tuple[ast.AST, str], values: list[ast.expr | None]) -> bool:
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
                keeps = name in _KEEP_ORDER and not self.forgotten(parent)
                return node is not parent.func and (keeps or self._has_ties(parent))
            case ast.Call(func=ast.Attribute(attr=name)):
                return node is not parent.func and name in _KEEP_ORDER_METHODS
            case ast.Attribute(attr="pop"):
                return isinstance(self._parents[parent], ast.Call)
            case _:
                return False

    def _has_ties(self, call: ast.AST) -> bool:
        """Return whether a call orders by a key that several elements may have, which stay in the order they came in.

        So do ``max(set(votes), key=votes.count)`` and ``sorted(list(set(words)), key=counts.get)``.
        """
        match call:
            case ast.Call(func=ast.Name(id=name), keywords=keywords) if name in _BY_KEY:
                return any(one.arg == "key" and not _is_unique(one.value) for one in keywords)
            case ast.Call(func=ast.Name(id=name)):
                return name in _HANDS_ON and self._has_ties(self._parents[call])
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


def _is_unique(key: ast.expr) -> bool:
    """Return whether no two elements have the same key: it is the element itself, or has it in it."""
    match key:
        case ast.Lambda(args=ast.arguments(args=[ast.arg(arg=name)]), body=body):
            parts = body.elts if isinstance(body, ast.Tuple) else [body]
            return any(isinstance(part, ast.Name) and part.id == name for part in parts)
        case _:
            return isinstance(key, ast.Name) and key.id in ("str", "repr", "int", "float", "hash", "id")


def waiting(node: ast.expr | None) -> ast.Call | None:
    """Return the call of concurrent.futures.wait or asyncio.wait that this is: what it returns unpacks to sets."""
    match node.value if isinstance(node, ast.Await) else node:
        case ast.Call(func=ast.Name(id="wait"), args=[_, *_]) as call:
            return call
        case ast.Call(func=ast.Attribute(attr="wait", value=owner), args=[_, *_]) as call:
            return call if ast.unparse(owner) in _WAITING else None
        case _:
            return None


_WAITING = {"asyncio", "futures", "concurrent.futures", "cf"}


def _passed_by(call: ast.Call, at: int | None, name: str) -> ast.expr | None:
    """Return what a call passes to the parameter with this place and name, None if that is not said."""
    placed = call.args[at] if at is not None and at < len(call.args) else None
    return placed or next((one.value for one in call.keywords if one.arg == name), None)


def defaults(arguments: ast.arguments) -> dict[str, ast.expr]:
    """Return the default of each parameter that has one."""
    placed = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(placed[len(placed) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    pairs += [(one, default) for one, default in keywords if default is not None]
    return {one.arg: default for one, default in pairs}


def _is_view(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "items")


def _is_range(call: ast.Call) -> bool:
    return any(isinstance(a, ast.Call) and isinstance(a.func, ast.Name) and a.func.id == "range" for a in call.args)


# Find code that iterates over a set, computes with hashes or addresses, passes no seed, or reads new memory.


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

UNORDERED = "generator_unordered"
"""What joblib returns as soon as a task is done, as it is asked."""

_BUILTINS = {"hash": HASH, "id": ID}

Found = tuple[int, SourceKind, str]
"""The line, its kind, and what is called if anything may be of that kind; of a set, OF_TEXTS or nothing."""


def in_text(text: bytes) -> tuple[Found, ...]:
    """Return what a source text does, by line, without duplicates. Raises SyntaxError."""
    return tuple(sorted(set(_found(Reader(parsed(text))))))


def _found(reader: Reader) -> Iterator[Found]:
    for taken in reader.sets_in_order():
        yield taken.lineno, SET, OF_TEXTS if reader.holds_texts(taken) else ""
    uses_polars = any(_is_polars(node) for node in ast.walk(reader.tree))
    for node in ast.walk(reader.tree):
        if isinstance(node, ast.Call):
            if kind := hashed(reader, node):
                yield node.lineno, kind, ""
            yield from _unseeded(node)
            yield from _uninitialized(node)
            if any(one.arg == "return_as" and _says(one.value, UNORDERED) for one in node.keywords):
                call = f"{ast.unparse(node.func)}(return_as={UNORDERED!r})"
                yield node.lineno, SourceKind.COMPLETION_ORDER_OPTION, call
            if uses_polars and (name := in_any_order(node)):
                yield node.lineno, SourceKind.ROW_ORDER, name
    for draw in shared_draws(reader):
        yield draw.lineno, SourceKind.SHARED_GENERATOR, ast.unparse(draw.func)


def _says(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


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
    arguments = (*call.args, *(keyword.value for keyword in call.keywords))
    if all(isinstance(argument, ast.Constant) and argument.value is None for argument in arguments):
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


def _is_polars(node: ast.AST) -> bool:
    return (isinstance(node, ast.Import) and any(one.name.partition(".")[0] == "polars" for one in node.names)) or (
        isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "polars"
    )


def in_any_order(call: ast.Call) -> str:
    """Return the method that a call groups rows with, or keeps each once, in the order in which Polars finds them.

    That is ``""`` for any other call. Whether it is one of Polars, other libraries having such names, is not known.
    """
    match call.func:
        case ast.Attribute(attr="group_by" | "unique" as name, value=owner) if ast.unparse(owner) not in _MODULES:
            return "" if any(keyword.arg == "maintain_order" for keyword in call.keywords) else name
        case _:
            return ""


# Draws of functions that several threads run, from a generator that is made elsewhere.


_POOLS = {"ThreadPool", "ThreadPoolExecutor"}
_OF_THREADS = {"threads", "threading", "sharedmem"}
"""What ``Parallel`` of joblib is told if its workers are to be threads."""

_EACH = {"map", "imap", "imap_unordered", "map_async", "starmap", "starmap_async"}
"""Methods of pools that call a function with each element."""

_ONCE = {"apply_async": 0, "submit": 0, "to_thread": 0, "run_in_executor": 1}
"""What has a function called once, and where it is among the arguments."""

_SEEDED = {"default_rng", "Random", "RandomState", "Generator"}
_NO_DRAWS = {"seed", "manual_seed", "get_state", "set_state", "getstate", "setstate"}
_LOOPS = ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def has_threads(tree: ast.Module) -> bool:
    """Whether a file makes a pool of threads, or tells joblib to."""
    nodes = list(ast.walk(tree))
    pools = any(isinstance(node, ast.Call) and _last(node.func) in _POOLS and not _is_single(node) for node in nodes)
    return pools or any(isinstance(node, ast.Constant) and node.value in _OF_THREADS for node in nodes)


def shared_draws(reader: Reader) -> list[ast.Call]:
    """Return the calls that draw from a generator with a seed in functions that several threads run at once.

    The generator is made outside of the function. One of torch is passed on, as ``torch.randn(3, generator=g)``.
    """
    if not any(_is_seeded_generator(call) for call in _calls_in(reader.tree)):
        return []
    pooled = has_threads(reader.tree)
    functions = [node for node in ast.walk(reader.tree) if isinstance(node, Function)]
    running, todo = list[Function](), [one for one in functions if _is_run_by_threads(reader, one, pooled)]
    while todo:
        running.append(todo.pop())
        called = {node.func.id for node in _calls_in(running[-1]) if isinstance(node.func, ast.Name)}
        todo += [one for one in functions if one.name in called and one not in (*running, *todo)]
    return [call for one in running for call in _calls_in(one) if _draws_from_outside(reader, call, one)]


def _calls_in(node: ast.AST) -> Iterator[ast.Call]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Call))


def _is_run_by_threads(reader: Reader, function: Function, pooled: bool) -> bool:
    return sum(_times_in_threads(reader, use, pooled) for use in reader.uses(function)) > 1


def _times_in_threads(reader: Reader, use: ast.expr, pooled: bool) -> int:
    """Return how often a use of a function has a thread run it: 0, 1, or 2 for more.

    ``pooled`` says that the pools of this file are of threads.
    """
    around = reader.parent(use)
    call = reader.parent(around) if isinstance(around, ast.keyword) else around
    if not isinstance(call, ast.Call):
        return 0
    name = "" if ast.unparse(call.func) == "map" else _last(call.func)
    if isinstance(around, ast.keyword):
        starts = around.arg == "target" and name == "Thread"
    elif pooled and call.args[:1] == [use] and name in _EACH | {"delayed"}:
        return 2
    else:
        starts = (pooled or name == "to_thread") and name in _ONCE and call.args[_ONCE[name] :][:1] == [use]
    node: ast.AST = call
    while starts and not isinstance(node, Scope):
        node = reader.parent(node)
        if isinstance(node, _LOOPS):
            return 2
    return int(starts)


def _draws_from_outside(reader: Reader, call: ast.Call, function: Function) -> bool:
    passed = next((one.value for one in call.keywords if one.arg == "generator"), None)
    owner = call.func.value if isinstance(call.func, ast.Attribute) and passed is None else passed
    if not isinstance(owner, ast.Name | ast.Attribute) or _last(call.func) in _NO_DRAWS:
        return False
    values = reader.values(owner)
    return bool(values) and all(
        value is not None and _is_seeded_generator(value) and function not in _around(reader, value) for value in values
    )


def _is_seeded_generator(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="manual_seed", value=made)):
            return _is_seeded_generator(made)
        case ast.Call(func=function, args=args, keywords=keywords):
            of_torch = ast.unparse(function) == "torch.Generator"
            return _last(function) in _SEEDED and (of_torch or bool(args or keywords))
        case _:
            return False


def _around(reader: Reader, node: ast.AST) -> Iterator[ast.AST]:
    while node is not reader.tree:
        node = reader.parent(node)
        yield node


def _is_single(pool: ast.Call) -> bool:
    """Whether a pool is one of a single thread."""
    sizes = [*pool.args[:1], *(one.value for one in pool.keywords if one.arg in ("max_workers", "processes"))]
    return any(isinstance(one, ast.Constant) and one.value == 1 for one in sizes)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


# Code whose result depends on hashes, addresses or memory, found by reading it: no hook sees a set being iterated.


MOST_BYTES = 1_000_000

_ORDER = {SourceKind.UNSEEDED: 0, SourceKind.UNINITIALIZED: 2}


@dataclass(frozen=True)
class Pinned:
    """What cannot differ between the runs: the string hash seed, the addresses, and the lines that the flags fix."""

    hash_seed: bool = False
    addresses: bool = False
    fixed: tuple[SourceMatch, ...] = ()

    def suspect(self, source: Source) -> Source | None:
        """Return a line as the suspect that it is in such runs, None if it is none."""
        match source.kind:
            case SourceKind.SET_ORDER if self.hash_seed:
                # Strings keep their order now, objects do not.
                kept = self.addresses or source.call == OF_TEXTS
                return None if kept else replace_kind(source, SourceKind.OBJECT_SET_ORDER)
            case SourceKind.SET_ORDER | SourceKind.ADDRESS:
                return None if source.kind is SourceKind.ADDRESS and self.addresses else source
            case SourceKind.HASH:
                return None if self.hash_seed else source
            case _:
                return None if any(match.matches(source) for match in self.fixed) else source


def replace_kind(source: Source, kind: SourceKind) -> Source:
    """Return the same line as of another kind."""
    return Source(file=source.file, line=source.line, kind=kind, call=source.call, suspect=source.suspect)


def read(root: Path, files: Iterable[str], pinned: Pinned) -> tuple[Source, ...]:
    """Return the suspects in these files, relative to ``root`` or absolute.

    A file that cannot be read or parsed has none. Generators without a seed come first, and uninitialized memory last:
    most of it is written before it is read.
    """
    ranked = []
    for file in files:
        for line, kind, call in scanned(root / file):
            source = pinned.suspect(Source(file=file, line=line, kind=kind, call=call, suspect=True))
            if source is not None and source.call == OF_TEXTS:
                source = Source(file=file, line=line, kind=source.kind, suspect=True)
            if source is not None:
                ranked.append((_ORDER.get(kind, 1), source))
    return tuple(source for _, source in sorted(ranked, key=lambda pair: pair[0]))


def scanned(path: Path) -> tuple[Found, ...]:
    """Return what the code of a file shows, by line; nothing if it cannot be read or parsed."""
    try:
        text = code_of(path)
        return in_text(text) if len(text) <= MOST_BYTES else ()
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ()
