"""The edit that fixes a line, and whether the user has made it already."""

import ast
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from detaudit.config.flags import SEED, Flag
from detaudit.model import Edit, SourceKind
from detaudit.notebooks.cells import code_of, place
from detaudit.source.randomness import MOST_BYTES, NUMPY, Reader, hashed, parsed

# Edit a source text by offsets, which keeps its comments and its formatting.


_LINE_END = re.compile(rb"\r\n|\r|\n")
_USUAL = {"np": "numpy", "tf": "tensorflow", "jnp": "jax.numpy"}
"""What short names of modules stand for if a text does not import them itself."""

Placed = ast.expr | ast.stmt | ast.keyword

TextEdit = tuple[int, int, str]
"""From one byte to another of the text in UTF-8, and what shall stand there."""


@dataclass(frozen=True)
class Fix:
    """The edits that fix one place, none if no safe ones are known, and the imports that they need."""

    edits: tuple[TextEdit, ...] = ()
    needs: tuple[str, ...] = ()


UNSAFE = Fix()
"""The place is of the requested kind, and no fix is known that breaks nothing."""


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
        """The full dotted name of each imported name."""
        names = dict(_USUAL)
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

    def around(self, node: ast.expr, before: str, after: str) -> tuple[TextEdit, ...]:
        """Return the edits that insert text before and after a node."""
        start, end = self.span(node)
        return (start, start, before), (end, end, after)

    def instead(self, node: ast.expr, new: str) -> tuple[TextEdit, ...]:
        """Return the edit that replaces a node."""
        return ((*self.span(node), new),)

    def renamed(self, call: ast.Call, name: str) -> tuple[TextEdit, ...]:
        """Return the edit that calls another method of the same object, or another function of the same module."""
        end = self.span(call.func)[1]
        return ((end - len(last(call.func)), end, name),)


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


# Edit code that depends on an undefined order: of sets, directory listings and completion.


_LISTINGS = {"listdir", "scandir", "glob", "iglob", "iterdir", "rglob"}
_LISTS = {"listdir", "glob.glob"}
_UNORDERED = {"imap_unordered": "imap", "map_unordered": "map", "uimap": "imap"}
_IN_ORDER = {
    "in_order": {"DataLoader", "StatefulDataLoader"},
    "deterministic": {"map", "interleave", "parallel_interleave", "map_with_options", "ragged_batch"},
}
"""Keywords that are False if the order is given up, and the calls that take them."""

_COMPARABLE = {"Path", "PurePath", "PosixPath", "PurePosixPath", "Decimal", "Fraction", "UUID"}
_OF_OBJECTS = {"parameters", "modules", "children", "buffers"}
_ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.ListComp, ast.Tuple)


def taken_set(page: SourceText, node: ast.AST) -> Fix | None:
    """Sort a set that is iterated; turn a set of objects that cannot be sorted into a dict, which keeps its order."""
    if not isinstance(node, ast.expr) or not page.reader.is_taken_set(node):
        return None
    if isinstance(page.reader.parent(node), ast.Attribute):  # pop
        return UNSAFE
    if not _unsortable(page, node):
        return Fix(_sorted(page, node))
    start, end = page.span(node)
    match node:
        case ast.Set():
            return Fix(((start, start + 1, "dict.fromkeys(["), (end - 1, end, "])")))
        case ast.SetComp(generators=generators):
            waits = any(part.is_async for part in generators) or any(isinstance(n, ast.Await) for n in ast.walk(node))
            return UNSAFE if waits else Fix(((start, start + 1, "dict.fromkeys("), (end - 1, end, ")")))
        case ast.Call(func=ast.Name(), args=[argument]) if not page.reader.is_set(argument):
            return Fix(page.instead(node.func, "dict.fromkeys"))
        case _:
            return UNSAFE


def _sorted(page: SourceText, node: ast.expr) -> tuple[TextEdit, ...]:
    match page.reader.parent(node):
        case ast.Call(func=ast.Name(id="list") as function, args=[_], keywords=[]):  # sorted() returns a list too
            return page.instead(function, "sorted")
        case _:
            return page.around(node, "sorted(", ")")


def _unsortable(page: SourceText, node: ast.expr, depth: int = 3) -> bool:
    """Whether the elements are evidently objects that Python cannot compare."""
    match node:
        case ast.Set(elts=elements) | ast.List(elts=elements) | ast.Tuple(elts=elements):
            kinds = {_kind(e.value) for e in elements if isinstance(e, ast.Constant)}
            return len(kinds) > 1 or any(_is_object(page, element) for element in elements)
        case ast.SetComp(elt=element) | ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
            return _is_object(page, element)
        case ast.Call(func=ast.Name(id="map"), args=[function, *_]):
            return _is_class(last(function))
        case ast.Call(func=ast.Attribute(attr=name, value=value)):
            return name in _OF_OBJECTS or _unsortable(page, value, depth)
        case ast.Call(args=arguments):
            return any(_unsortable(page, argument, depth) for argument in arguments)
        case ast.BinOp(left=left, right=right):
            return _unsortable(page, left, depth) or _unsortable(page, right, depth)
        case ast.Name() | ast.Attribute() if depth:
            values = page.reader.values(node)
            added = _added(page, ast.unparse(node))
            return any(v is not None and _unsortable(page, v, depth - 1) for v in values) or any(
                _is_object(page, one) for one in added
            )
        case _:
            return False


def _added(page: SourceText, name: str) -> list[ast.expr]:
    """Return everything that is added to a set with this name."""
    calls = (node for node in ast.walk(page.reader.tree) if isinstance(node, ast.Call) and last(node.func) == "add")
    return [call.args[0] for call in calls if call.args and ast.unparse(call.func) == f"{name}.add"]


def _kind(value: object) -> str:
    return "number" if isinstance(value, int | float) else type(value).__name__


def _is_class(name: str) -> bool:
    return name[:1].isupper() and name not in _COMPARABLE


def _is_object(page: SourceText, node: ast.expr) -> bool:
    match node:
        case ast.Call(func=function):
            return _is_class(last(function)) or last(function) in ("object", "type")
        case ast.Lambda():
            return True
        case ast.Constant(value=value):
            return value is None or isinstance(value, complex)
        case ast.Tuple(elts=elements):
            return any(_is_object(page, element) for element in elements)
        case ast.Starred(value=value):
            return _unsortable(page, value)
        case ast.NamedExpr(value=value):
            return _is_object(page, value)
        case ast.IfExp(body=body, orelse=other):
            return _is_object(page, body) or _is_object(page, other)
        case ast.Name() | ast.Attribute():
            constant = last(node).isupper()
            return (_is_class(last(node)) and not constant) or page.full(node).startswith("torch.")
        case _:
            return False


def listing(page: SourceText, node: ast.AST) -> Fix | None:
    """Sort a listing of files."""
    if not isinstance(node, ast.Call):
        return None
    if page.full(node.func) in ("os.walk", "os.fwalk"):
        return UNSAFE
    if last(node.func) not in _LISTINGS or page.reader.forgotten(node):
        return None
    parent = page.reader.parent(node)
    if isinstance(parent, ast.withitem | ast.Attribute) or (
        isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr) and _is_iterator(page, node, parent)
    ):
        return UNSAFE
    if last(node.func) != "scandir":
        return Fix(_taken(page, node, _sorted(page, node)))
    return Fix(_taken(page, node, page.around(node, "sorted(", ", key=lambda entry: entry.name)")))


def _is_iterator(page: SourceText, call: ast.Call, bound: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> bool:
    """Whether a name is used later as an iterator, which a list is not."""
    if any(page.full(call.func).endswith(name) for name in _LISTS):
        return False
    targets = bound.targets if isinstance(bound, ast.Assign) else [bound.target]
    names = {ast.unparse(target) for target in targets}
    for node in ast.walk(page.reader.tree):
        match node:
            case ast.Call(func=ast.Name(id="next"), args=[taken, *_]) | ast.withitem(context_expr=taken):
                if ast.unparse(taken) in names:
                    return True
            case ast.Attribute(attr="close", value=value) if ast.unparse(value) in names:
                return True
            case _:
                pass
    return False


def _taken(page: SourceText, node: ast.expr, edits: tuple[TextEdit, ...]) -> tuple[TextEdit, ...]:
    """Return the edits; for next(), they wrap the list in iter()."""
    match page.reader.parent(node):
        case ast.Call(func=ast.Name(id="next"), args=[first, *_]) if first is node:
            (start, start_to, before), *rest, (end, end_to, after) = edits
            return (start, start_to, f"iter({before}"), *rest, (end, end_to, f"{after})")
        case _:
            return edits


def completion_order(page: SourceText, node: ast.AST) -> Fix | None:
    """Take the results of workers in the order in which they were requested."""
    match node:
        case ast.Call(func=function, args=[futures, *_]) if last(function) == "as_completed":
            return _as_submitted(page, node, futures)
        case ast.Call(func=ast.Attribute(attr=name)) if name in _UNORDERED:
            return Fix(page.renamed(node, _UNORDERED[name]))
        case ast.Call():
            return _keyword(page, node)
        case ast.Assign(targets=[ast.Attribute(attr="deterministic" | "experimental_deterministic")], value=value):
            return Fix(page.instead(value, "True")) if _is_false(value) else None
        case _:
            return None


def _as_submitted(page: SourceText, call: ast.Call, futures: ast.expr) -> Fix:
    parent = page.reader.parent(call)
    if isinstance(parent, ast.AsyncFor) or _is_mapping(page, futures):
        return UNSAFE
    (start, end), (first, stop) = page.span(call), page.span(futures)
    if isinstance(futures, ast.GeneratorExp):  # all its calls must be made before the first result is awaited
        return Fix(_taken(page, call, ((start, first + 1, "["), (stop - 1, end, "]"))))
    opened, closed = ("", "") if isinstance(futures, _ATOMS) else ("(", ")")
    return Fix(_taken(page, call, ((start, first, opened), (stop, end, closed))))


def _is_mapping(page: SourceText, node: ast.expr) -> bool:
    if isinstance(node, ast.Dict | ast.DictComp | ast.Starred) or page.reader.is_set(node):
        return True
    if isinstance(node, ast.Name | ast.Attribute):
        return any(
            isinstance(v, ast.Dict | ast.DictComp)
            or (isinstance(v, ast.Call) and last(v.func) in ("dict", "defaultdict"))
            for v in page.reader.values(node)
        )
    return False


def _keyword(page: SourceText, call: ast.Call) -> Fix | None:
    unordered = argument_of(call, "return_as")
    if isinstance(unordered, ast.Constant) and unordered.value == "generator_unordered":
        return Fix(page.instead(unordered, '"generator"'))
    for keyword in call.keywords:
        if keyword.arg and last(call.func) in _IN_ORDER.get(keyword.arg, ()) and _is_false(keyword.value):
            return Fix((_without(page, call, keyword),))
    return None


def _without(page: SourceText, call: ast.Call, keyword: ast.keyword) -> TextEdit:
    """Return the edit that leaves a keyword out, or says the opposite if comments stand in the way."""
    start, end = page.span(keyword)
    arguments: list[Placed] = [*call.args, *call.keywords]
    spans = [page.span(argument) for argument in arguments]
    before = max((stop for begin, stop in spans if begin < start), default=None)
    if before is not None:
        gap = re.fullmatch(r"[\s)]*?(,\s*)", page.text(before, start))
        if gap:
            return start - len(gap[1]), end, ""
    else:
        rest = re.match(r"\s*,\s*", page.text(end, page.span(call)[1]))
        return start, end + (len(rest[0]) if rest else 0), ""
    return (*page.span(keyword.value), "True")


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


# Whether code runs more than once: there a constant seed gives the same numbers each time, which is no fix.
#
# ``np.random.default_rng(0)`` in ``__getitem__`` makes a training deterministic by giving every item the same noise.


_INDEX = re.compile(
    r"(?:(?:sample|batch|item|image|img|data|row|epoch|fold|worker|local|global)_)?(?:index|idx)"
    r"|i|j|ix|ind|step|epoch|fold|trial|rank|worker_id"
)
"""Names of parameters that number the calls of a function; others may be the same in each call."""

_ITEM = "item"
"""Another name of the index of ``__getitem__``."""

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
            return _counter(target, values) if child in body else None
        case ast.While(orelse=otherwise):
            return None if child in otherwise else ()
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return _times_in_comprehension(parent, child, below)
        case ast.Lambda(body=body):
            return _parameters(parent) if child is body else None
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
            return _parameters(parent) if child in body and not _once(reader, parent, calls) else None
        case _:
            return None


def _times_in_comprehension(node: _Comprehension, child: ast.AST, below: ast.AST) -> Sequence[str] | None:
    first = node.generators[0]
    if child is first and below is first.iter:
        return None
    if isinstance(child, ast.comprehension):
        return ()
    counters = [_counter(part.target, part.iter) for part in node.generators]
    return [name for counter in counters for name in counter] if all(counters) else ()


def _counter(target: ast.expr, values: ast.expr) -> Sequence[str]:
    """Return the name that counts the passes of a loop, nothing if there is none."""
    while isinstance(values, ast.Call) and _name(values.func) in _WRAPPERS and values.args:
        values = values.args[0]
    match target, values:
        case ast.Name(id=name), ast.Call(func=function) if _name(function) in ("range", "trange"):
            return (name,)
        case ast.Tuple(elts=[ast.Name(id=name), *_]), ast.Call(func=function) if _name(function) == "enumerate":
            return (name,)
        case _:
            return ()


def _parameters(function: _Function | ast.Lambda) -> Sequence[str]:
    """Return the parameters that number the calls of a function."""
    parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    special = isinstance(function, _Function) and function.name == "__getitem__"
    names = [
        one.arg
        for one in parameters
        if (_INDEX.fullmatch(one.arg) or (special and one.arg == _ITEM))
        and (one.annotation is None or _name(one.annotation) == "int")
    ]
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return [name for name in names if name not in stored]


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


# How to edit what gives a different value in each run: seeds, hashes and uninitialized memory.


_GENERATORS = {*NUMPY, "default_rng", "Random", "SeedGenerator"}
_SEEDING = {
    *_GENERATORS,
    "seed",
    "manual_seed",
    "manual_seed_all",
    "seed_all",
    "seed_everything",
    "set_seed",
    "set_random_seed",
    "set_manual_seed",
    "PRNGKey",
    "from_seed",
}
_SEED_ARGUMENTS = ("seed", "entropy", "key", "x", "a")
"""Keywords by which generators and seeding functions take a seed."""

_SEED_KEYWORDS = ("seed", "random_state", "random_seed", "rng_seed")
"""Keywords that are a seed, whoever takes them."""

_CLOCKS = {"time", "datetime", "uuid", "secrets"}
_CLOCK_CALLS = {"now", "utcnow", "today", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time_ns"}
_PROCESS_CALLS = {"getpid", "getppid", "urandom", "get_ident", "get_native_id", "uuid1", "uuid4"}
_ARRAYS = {"numpy", "torch", "cupy", "jax.numpy"}
_ZEROS = {"empty": "zeros", "empty_like": "zeros_like"}
_UNINITIALIZED_ONLY = {"torch.empty_strided", "torch.empty_permuted"}


def unseeded(page: SourceText, node: ast.AST) -> Fix | None:
    """Give an unseeded generator the seed 0, with what numbers the times at which it is made if it is made again."""
    if not isinstance(node, ast.Call):
        return None
    name = last(node.func)
    if name not in {"from_non_deterministic_state", "seed", "seed_all", "seed_everything", *_GENERATORS}:
        return None
    if not _takes_a_seed(node):
        return None
    seed = _seed_of(page, node, arrays=name in (*NUMPY, "default_rng") or page.full(node.func) == "numpy.random.seed")
    if seed is None:
        return UNSAFE
    if name == "from_non_deterministic_state":
        return Fix((*page.renamed(node, "from_seed"), *_seed_first(page, node, seed)))
    renamed = page.renamed(node, _method(page, node)) if name in ("seed", "seed_all") else ()
    return Fix((*renamed, *_seed(page, node, seed)))


def _seed_of(page: SourceText, node: ast.AST, *, arrays: bool) -> str | None:
    """Return a seed for what is evaluated here, another one each time; None if none is at hand.

    Only ``arrays`` of integers take several numbers: NumPy's generators mix them.
    """
    names = indexes(page.reader, node)
    if names is None:
        return None
    if not names:
        return "0"
    if arrays:
        return f"[0, {', '.join(names)}]"
    return names[0] if len(names) == 1 else None


def is_repeated_call(page: SourceText, node: ast.AST) -> bool:
    """Whether this makes or seeds a generator, maybe more than once, and no name numbers those times."""
    if not isinstance(node, ast.Call) or indexes(page.reader, node) is not None:
        return False
    return last(node.func) in {*_SEEDING, "from_non_deterministic_state"}


def _method(page: SourceText, call: ast.Call) -> str:
    """Return what seeds with a number if seed() draws one: only in torch it has another name."""
    name, function = last(call.func), page.full(call.func)
    if function.startswith("torch."):
        return f"manual_{name}"
    if not isinstance(call.func, ast.Attribute) or function.rpartition(".")[0] in ("random", "numpy.random"):
        return name
    values = page.reader.values(call.func.value)
    numbers = any(isinstance(v, ast.Call) and last(v.func) in ("Random", "RandomState") for v in values)
    torch = any(full.split(".")[0] == "torch" for full in page.imports.values())
    return f"manual_{name}" if torch and not numbers else name


def _takes_a_seed(call: ast.Call) -> bool:
    """Whether a call has no seed yet, and may be given one."""
    seed = call.args[0] if call.args else argument_of(call, *_SEED_ARGUMENTS)
    return _is_none(seed) if seed is not None else not given_otherwise(call)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _seed(page: SourceText, call: ast.Call, new: str) -> tuple[tuple[int, int, str], ...]:
    """Return the edit that gives a call a seed, in place of None if it has that."""
    seed = call.args[0] if call.args else argument_of(call, *_SEED_ARGUMENTS)
    return page.instead(seed, new) if seed is not None else _seed_first(page, call, new)


def given_otherwise(call: ast.Call) -> bool:
    """Whether a call may have arguments that cannot be read here, such as ``*args``."""
    return any(keyword.arg is None for keyword in call.keywords)


def _seed_first(page: SourceText, call: ast.Call, seed: str) -> tuple[tuple[int, int, str], ...]:
    if call.keywords and not call.args:
        start = page.span(call.keywords[0])[0]
        return ((start, start, f"{seed}, "),)
    end = page.span(call)[1] - 1
    return ((end, end, seed),)


def moving_seed(page: SourceText, node: ast.AST) -> Fix | None:
    """Replace a seed that is computed from the clock, the process ID or entropy by 0, or by what numbers its uses."""
    if not isinstance(node, ast.Call):
        return None
    seeds = [keyword.value for keyword in node.keywords if keyword.arg in _SEED_KEYWORDS]
    if last(node.func) in _SEEDING or page.full(node.func) in ("jax.random.key", "random.key"):
        seeds += [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg in ("key", "entropy", "a"))]
    for seed in seeds:
        if _moves(page, seed):
            return _replaced(page, seed)
        if isinstance(seed, ast.Name):
            values = page.reader.values(seed)
            if any(value is not None and _moves(page, value) for value in values):
                return _where_bound(page, values)
    return None


def _where_bound(page: SourceText, values: list[ast.expr | None]) -> Fix:
    """Edit the line that computes a seed, so that every use of it gets the same seed."""
    value = values[0]
    if len(values) > 1 or value is None or value.lineno != value.end_lineno:
        return UNSAFE
    return _replaced(page, value)


def _replaced(page: SourceText, seed: ast.expr) -> Fix:
    new = _seed_of(page, seed, arrays=False)
    return UNSAFE if new is None else Fix(page.instead(seed, new))


def _moves(page: SourceText, node: ast.expr) -> bool:
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            name, full = last(one.func), page.full(one.func)
            if name in _CLOCK_CALLS | _PROCESS_CALLS or (full.split(".")[0] in _CLOCKS and "." in full):
                return True
    return False


def uninitialized_memory(page: SourceText, node: ast.AST) -> Fix | None:
    """Replace uninitialized memory by zeros."""
    if not isinstance(node, ast.Call):
        return None
    module, _, name = page.full(node.func).rpartition(".")
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


def _is_of_objects(call: ast.Call) -> bool:
    """Whether an array has the dtype object, which is filled with None."""
    kind = call.args[1] if len(call.args) > 1 else argument_of(call, "dtype")
    return (isinstance(kind, ast.Name) and kind.id == "object") or (
        isinstance(kind, ast.Constant) and kind.value in ("O", "object")
    )


def salted_hash(page: SourceText, node: ast.AST) -> Fix | None:
    """Replace hash() of a text, which depends on the hash seed, by a checksum."""
    if not isinstance(node, ast.Call) or hashed(page.reader, node) is not SourceKind.HASH:
        return None
    needs = () if page.imports.get("zlib") == "zlib" else ("import zlib",)
    for keyword in node.keywords:
        if keyword.arg == "key":
            return Fix(page.instead(keyword.value, "lambda item: zlib.crc32(str(item).encode())"), needs)
    match node.args:
        case [ast.JoinedStr() | ast.Constant(value=str()) as text]:
            edits = page.around(text, "", ".encode()")
        case [ast.Constant(value=bytes())]:
            edits = ()
        case [value] if not isinstance(value, ast.Starred | ast.Lambda) and not _has_address(page, value):
            edits = page.around(value, "str(", ").encode()")
        case _:
            return UNSAFE
    return Fix((*page.instead(node.func, "zlib.crc32"), *edits), needs)


def _has_address(page: SourceText, node: ast.expr) -> bool:
    """Whether the text of a value differs between runs, like the order of a set or the address of an object."""
    return (
        page.reader.is_set(node)
        or (isinstance(node, ast.Name) and node.id == "self")
        or (isinstance(node, ast.Call) and last(node.func) in ("object", "set", "frozenset"))
    )


# Find a line of the user's that does by hand what a flag does: advice to add it would be no news.


def place_of(root: Path, files: Iterable[str], flag: Flag) -> str:
    """Return file and line of the first statement that makes the calls and the settings of a flag, ``""`` without one.

    ``files`` are relative to ``root`` or absolute. Only calls and settings count, and any seed is as good as another.
    """
    if not flag.is_line or not (flag.call or flag.set):
        return ""
    for file in files:
        line = _line(root / file, flag)
        if line:
            return place(file, line)
    return ""


def _line(path: Path, flag: Flag) -> int:
    """Return the line at which the last of all that the flag does is done, 0 if something is missing."""
    try:
        text = code_of(path)
        page = SourceText.of(text) if len(text) <= MOST_BYTES else None
    except (OSError, SyntaxError, ValueError, RecursionError):
        return 0
    if page is None:
        return 0
    done = dict(_settings(page))
    lines = [done.get((name, _seeded(arguments))) for name, arguments in flag.call.items()]
    lines += [done.get((name, repr(value))) for name, value in flag.set.items()]
    return max(line or 0 for line in lines) if all(lines) else 0


def _seeded(arguments: tuple[object, ...]) -> str:
    """Return the arguments of a call as text, ``SEED`` if one of them is a seed."""
    return SEED if SEED in arguments else repr(tuple(arguments))


def _settings(page: SourceText) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the function that each call calls, or the attribute that is set, with the constants, and the line."""
    for node in ast.walk(page.reader.tree):
        match node:
            case ast.Call(func=function, args=arguments, keywords=[]):
                if arguments:
                    yield (page.full(function), SEED), node.lineno
                if all(isinstance(one, ast.Constant) for one in arguments):
                    values = tuple(one.value for one in arguments if isinstance(one, ast.Constant))
                    yield (page.full(function), repr(values)), node.lineno
            case ast.Assign(targets=[ast.Attribute() as target], value=ast.Constant(value=value)):
                yield (page.full(target), repr(value)), node.lineno
            case _:
                pass


# Find the edit that fixes a line, given what it does, and whether a constant seed there would do harm.


_Rule = Callable[[SourceText, ast.AST], Fix | None]

RULES: dict[SourceKind, _Rule] = {
    SourceKind.SET_ORDER: taken_set,
    SourceKind.OBJECT_SET_ORDER: taken_set,
    SourceKind.LISTING_ORDER: listing,
    SourceKind.UNSEEDED: unseeded,
    SourceKind.CLOCK: moving_seed,
    SourceKind.PROCESS_ID: moving_seed,
    SourceKind.COMPLETION_ORDER: completion_order,
    SourceKind.COMPLETION_ORDER_OPTION: completion_order,
    SourceKind.UNINITIALIZED: uninitialized_memory,
    SourceKind.HASH: salted_hash,
}
"""By kind, what looks at a node: None if it is none of that kind, an empty fix if nothing safe is known."""

_SEEDS = frozenset({SourceKind.UNSEEDED, SourceKind.CLOCK, SourceKind.PROCESS_ID})

_MOST = 20
"""The most places to fix in one statement."""


@dataclass(frozen=True)
class Rewrite:
    """An edit of whole lines, without their ends: the lines from ``first`` on, and what replaces them.

    ``needs`` are the imports that the new lines need and the file does not have.
    """

    first: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    needs: tuple[str, ...] = ()


def rewritten(text: bytes | str, line: int, kind: SourceKind) -> Rewrite | None:
    """Return what fixes everything of a kind in the statement at a line, None if no safe edit is known.

    The edited lines may be others: an expression may begin above that line, and a seed may be computed elsewhere.
    """
    rule = RULES.get(kind)
    try:
        return _rewritten(SourceText.of(text), line, rule) if rule else None
    except (SyntaxError, ValueError, RecursionError):
        return None


def is_repeated(text: bytes | str, line: int, kind: SourceKind) -> bool:
    """Whether a line makes or seeds a generator, and may be reached more than once with no name to number that.

    A constant seed there repeats the same numbers, so no edit of the line is known that is safe.
    """
    if kind not in _SEEDS:
        return False
    try:
        page = SourceText.of(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return any(is_repeated_call(page, node) for node in page.at(line))


def edit(root: Path, file: str, line: int, kind: SourceKind) -> Edit | None:
    """Return the edit of a file that fixes what is of this kind at a line, None if no safe one is known."""
    try:
        rewrite = rewritten(code_of(root / file), line, kind)
    except OSError:
        return None
    return (
        Edit(file=file, line=rewrite.first, old=rewrite.old, new=rewrite.new, needs=rewrite.needs) if rewrite else None
    )


def is_repeated_in(root: Path, file: str, line: int, kind: SourceKind) -> bool:
    """Return the same of a line of a file; False if it cannot be read."""
    try:
        return is_repeated(code_of(root / file), line, kind)
    except OSError:
        return False


def _rewritten(before: SourceText, line: int, rule: _Rule) -> Rewrite | None:
    page, needs = before, list[str]()
    for _ in range(_MOST):
        fixes = [(node, fix) for node in page.at(line) if (fix := rule(page, node)) is not None]
        if not fixes:
            return _difference(before.lines, page.lines, needs)
        if not all(fix.edits and page.is_placed(node) for node, fix in fixes):
            return None
        # Apply one edit at a time: it may move the nodes inside it, or make their fix unnecessary.
        edits = fixes[0][1].edits
        needs += [one for one in fixes[0][1].needs if one not in needs]
        page, line = page.edited(edits), page.moved(line, edits)
    return None


def _difference(old: list[str], new: list[str], needs: list[str]) -> Rewrite | None:
    if old == new:
        return None
    shorter = min(len(old), len(new))
    above = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    below = next((n for n in range(shorter - above) if old[-1 - n] != new[-1 - n]), shorter - above)
    return Rewrite(above + 1, tuple(old[above : len(old) - below]), tuple(new[above : len(new) - below]), tuple(needs))
