"""Whether code runs more than once: there a constant seed gives the same numbers each time, which is no fix.

``np.random.default_rng(0)`` in ``__getitem__`` makes a training deterministic by giving every item the same noise.
"""

import ast
import re
from collections.abc import Sequence

from detaudit.source.randomness import Reader

_INDEX = re.compile(r"(?:(?:sample|batch|item|image|img|data|row|local|global)_)?(?:index|idx)|i|j|ix|ind|item")
"""Names that ``__getitem__`` has for a number; it may be given slices and keys too."""

_MAPS = {"map", "imap", "imap_unordered", "map_async"}
_STARMAPS = {"starmap", "starmap_async"}
_SUBMITS = {"submit", "apply_async"}
"""Functions that call their first argument: with each element of the next one, with what is in it, or with itself."""

_STARTS = {"spawn"}
"""Functions that call their first argument in processes, with the number of each (torch.multiprocessing)."""

_CALLS = {"delayed"}
"""Functions that return their argument to be called."""

_WRAPPERS = {"tqdm", "list", "reversed", "track"}
"""Calls that hand on the elements of their first argument."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def indexes(reader: Reader, node: ast.AST) -> tuple[str, ...] | None:
    """Return the names that number the times at which a node is evaluated, outermost first.

    There are no such names for what is evaluated once: at the top of a file, or in functions that are called once from
    there, such as ``main``. None if it may be evaluated more than once, and a name does not number all of that.
    """
    return _indexes(reader, node, frozenset())


def starts_worker(reader: Reader, node: ast.AST) -> bool:
    """Whether a node is evaluated once when a worker of torch starts: in its ``worker_init_fn``, in no loop."""
    function = reader.scope(node)
    if not isinstance(function, _Function | ast.Lambda):
        return False
    calls = (one for one in ast.walk(reader.tree) if isinstance(one, ast.Call))
    starts = [word.value for call in calls for word in call.keywords if word.arg == "worker_init_fn"]
    named = isinstance(function, _Function) and any(_name(one) == function.name for one in starts)
    statement: ast.AST = node
    while reader.parent(statement) is not function:
        statement = reader.parent(statement)
        if isinstance(statement, ast.For | ast.While | _Comprehension):
            return False
    return named or function in starts


def is_handed_on(reader: Reader, function: ast.FunctionDef) -> bool:
    """Whether a function is used once: given to something that calls it, maybe in another process."""
    uses = reader.uses(function)
    call = reader.parent(uses[0]) if len(uses) == 1 else None
    if isinstance(call, ast.keyword):
        return _process_of(reader, call) is not None
    handing_on = _CALLS | _MAPS | _STARMAPS | _SUBMITS | _STARTS
    return isinstance(call, ast.Call) and call.args[:1] == uses and _name(call.func) in handing_on


def _process_of(reader: Reader, target: ast.keyword) -> ast.Call | None:
    """Return the call that makes a process whose ``target`` this is."""
    call = reader.parent(target)
    return call if target.arg == "target" and isinstance(call, ast.Call) and _name(call.func) == "Process" else None


def is_of_item(reader: Reader, node: ast.AST) -> bool:
    """Whether a node is evaluated for each item of a data set, in each epoch again."""
    while node is not reader.tree:
        node = reader.parent(node)
        if isinstance(node, _Function) and node.name == "__getitem__":
            return True
    return False


def _indexes(reader: Reader, node: ast.AST, calls: frozenset[ast.AST]) -> tuple[str, ...] | None:
    indices, below, child = list[str](), node, node
    while child is not reader.tree:
        parent = reader.parent(child)
        names = _times(reader, parent, child, below, calls)
        if names is not None:
            if not names or set(names) & set(indices):
                return None
            indices = [*names, *indices]
        below, child = child, parent
    return tuple(indices)


def _times(
    reader: Reader, parent: ast.AST, child: ast.AST, below: ast.AST, calls: frozenset[ast.AST]
) -> Sequence[str] | None:
    """Return what numbers the times at which ``child`` is evaluated in ``parent``: nothing if unknown, None for once.

    ``below`` is the child of ``child`` that is asked about.
    """
    match parent:
        case ast.For(target=target, iter=values, body=body) | ast.AsyncFor(target=target, iter=values, body=body):
            return _counter(reader, target, values) if child in body else None
        case ast.While(orelse=otherwise):
            return None if child in otherwise else ()
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return _times_in_comprehension(reader, parent, child, below)
        case ast.Lambda(body=body):
            once = child is not body or _makes_field_once(reader, parent, calls)
            return None if once else _parameters(reader, parent, calls)
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
            return _parameters(reader, parent, calls) if child in body and not _once(reader, parent, calls) else None
        case _:
            return None


def _times_in_comprehension(
    reader: Reader, node: _Comprehension, child: ast.AST, below: ast.AST
) -> Sequence[str] | None:
    first = node.generators[0]
    if child is first and below is first.iter:
        return None
    if isinstance(child, ast.comprehension):
        return ()
    counters = [_counter(reader, part.target, part.iter) for part in node.generators]
    return [name for counter in counters for name in counter] if all(counters) else ()


def _counter(reader: Reader, target: ast.expr, values: ast.expr, depth: int = 3) -> Sequence[str]:
    """Return the name that counts the passes of a loop, nothing if there is none."""
    part = _number_in(reader, values, depth)
    if isinstance(target, ast.Tuple) and part:
        target = next((one for n, one in enumerate(target.elts) if part == f"[{n}]"), target)
        part = ""
    return (target.id,) if isinstance(target, ast.Name) and part == "" else ()


def _number_in(reader: Reader, values: ast.expr, depth: int = 3) -> str | None:
    """Return which part of the elements of ``values`` is a number that no other has.

    Nothing for all of it, ``[0]`` for its first element; None if the code does not show that there is one.
    """
    while isinstance(values, ast.Call) and _name(values.func) in _WRAPPERS and values.args:
        values = values.args[0]
    match values:
        case ast.Name(id=name) if depth:
            uses = [one for one in ast.walk(reader.tree) if isinstance(one, ast.Name) and one.id == name]
            changed = any(_changes(reader.parent(one)) for one in uses)
            bound = reader.values(values)
            known = bound[0] if len(bound) == 1 and not changed else None
            return _number_in(reader, known, depth - 1) if known is not None else None
        case ast.Call(func=function, args=parts):
            name = _name(function)
            if name == "zip" and depth:
                numbered = (n for n, part in enumerate(parts) if _number_in(reader, part, depth - 1) == "")
                return next((f"[{n}]" for n in numbered), None)
            return "" if name in ("range", "trange") else "[0]" if name == "enumerate" else None
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            numbers = [one.value for one in elements if isinstance(one, ast.Constant) and type(one.value) is int]
            return "" if len({*numbers}) == len(elements) else None
        case ast.ListComp(elt=element, generators=[part]) | ast.GeneratorExp(elt=element, generators=[part]) if depth:
            counter = _counter(reader, part.target, part.iter, depth - 1)
            names = [_name(one) for one in (element.elts if isinstance(element, ast.Tuple) else [element])]
            if not counter or counter[0] not in names:
                return None
            return f"[{names.index(counter[0])}]" if isinstance(element, ast.Tuple) else ""
        case _:
            return None


def _changes(parent: ast.AST) -> bool:
    """Whether a list may be changed where it is used: by a method, in place, or one of its elements."""
    return isinstance(parent, ast.Attribute | ast.AugAssign) or not isinstance(getattr(parent, "ctx", _LOAD), ast.Load)


_LOAD = ast.Load()


def _parameters(reader: Reader, function: _Function | ast.Lambda, calls: frozenset[ast.AST]) -> Sequence[str]:
    """Return the parameters, or parts of them, that number the calls of a function: each call has another value."""
    special = isinstance(function, _Function) and function.name == "__getitem__"
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    numbers = []
    for place, one in enumerate(_function_args(function)):
        if one.arg in stored or (special and not _INDEX.fullmatch(one.arg)):
            continue
        part = "" if special else _numbers_calls(reader, function, place, calls)
        if part or (part is not None and (one.annotation is None or _name(one.annotation) == "int")):
            numbers.append(one.arg + part)
    return numbers


def _numbers_calls(
    reader: Reader, function: _Function | ast.Lambda, place: int, calls: frozenset[ast.AST]
) -> str | None:
    """Return which part of a parameter numbers the calls of a function, which is used in one place.

    Nothing for all of it, ``[0]`` for its first element; None if the code does not show that each call has another.
    """
    uses = [function] if isinstance(function, ast.Lambda) else reader.uses(function)
    if function in calls or len(uses) != 1:
        return None
    use: ast.expr = uses[0]
    name, calls, place = _function_args(function)[place].arg, calls | {function}, place - isinstance(use, ast.Attribute)
    call = reader.parent(use)
    if isinstance(call, ast.Call) and _name(call.func) in _CALLS and call.args == [use]:
        use, call = call, reader.parent(call)
    if place < 0:
        return None
    if isinstance(call, ast.keyword):
        process = _process_of(reader, call)
        if process is None:
            return "" if call.arg == "worker_init_fn" and place == 0 else None
        given, keywords, call = _packed(process), [], process
    elif not isinstance(call, ast.Call):
        return None
    elif call.func is use:
        given, keywords = call.args, call.keywords
    elif call.args[:1] != [use]:
        return None
    elif _name(call.func) in _STARTS | _MAPS | _STARMAPS:
        return _part_that_numbers(reader, call, place) if _indexes(reader, call, calls) == () else None
    elif _name(call.func) in _SUBMITS:
        given, keywords = call.args[1:], call.keywords
    else:
        return None
    keyword = next((one.value for one in keywords if one.arg == name), None)
    argument = keyword or (given[place] if place < len(given) else None)
    return "" if isinstance(argument, ast.Name) and _indexes(reader, call, calls) == (argument.id,) else None


def _packed(process: ast.Call) -> list[ast.expr]:
    """Return what a process passes to its target."""
    packed = next((one.value for one in process.keywords if one.arg == "args"), None)
    return packed.elts if isinstance(packed, ast.Tuple | ast.List) else []


def _part_that_numbers(reader: Reader, call: ast.Call, place: int) -> str | None:
    """Return which part of a parameter numbers the calls that this call makes."""
    if _name(call.func) in _STARTS:
        return "" if place == 0 else None
    if _name(call.func) in _STARMAPS:
        return "" if call.args[1:] and _number_in(reader, call.args[1]) == f"[{place}]" else None
    return _number_in(reader, call.args[1 + place]) if 1 + place < len(call.args) else None


def _makes_field_once(reader: Reader, function: ast.Lambda, calls: frozenset[ast.AST]) -> bool:
    """Whether a lambda makes the default of a field, of a class that is called once."""
    keyword, owner = reader.parent(function), reader.scope(function)
    return (
        isinstance(keyword, ast.keyword)
        and keyword.arg in ("default_factory", "factory")
        and isinstance(owner, ast.ClassDef)
        and owner not in calls
        and _called_once(reader, owner.name, calls | {owner})
    )


def _function_args(function: _Function | ast.Lambda) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _once(reader: Reader, function: _Function, calls: frozenset[ast.AST]) -> bool:
    """Whether a function is called once: at one place, which is evaluated once."""
    owner = reader.parent(function)
    if isinstance(owner, ast.ClassDef):
        if function.name != "__init__":
            return False
        return owner not in calls and _called_once(reader, owner.name, calls | {owner})
    return function not in calls and _called_once(reader, function.name, calls | {function})


def _called_once(reader: Reader, name: str, calls: frozenset[ast.AST]) -> bool:
    names = (node for node in ast.walk(reader.tree) if isinstance(node, ast.Name) and node.id == name)
    used = [node for node in names if isinstance(node.ctx, ast.Load)]
    if len(used) != 1:
        return False
    call = reader.parent(used[0])
    return isinstance(call, ast.Call) and call.func is used[0] and _indexes(reader, call, calls) == ()


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
