"""Rules for undefined orders: of sets, directory listings, completion, and addresses."""

import ast
from collections.abc import Iterable, Mapping

from detaudit.model import SourceKind
from detaudit.rules.calls import fixed, with_keyword, without
from detaudit.rules.rule import UNSAFE, Fix, Rule
from detaudit.source.machine_reads import is_listing
from detaudit.source.randomness import UNORDERED, in_any_order, waiting
from detaudit.source.text import SourceText, TextEdit, argument_of, given_otherwise, last

_LISTS = {"listdir", "glob.glob"}
_UNORDERED = {"imap_unordered": "imap", "map_unordered": "map", "uimap": "imap"}
_IN_ORDER = {
    "in_order": {"DataLoader", "StatefulDataLoader"},
    "deterministic": {"map", "interleave", "parallel_interleave", "map_with_options", "ragged_batch"},
}
"""Keywords that are False if the order is given up, and the calls that take them."""

_COMPARABLE = {"Path", "PurePath", "PosixPath", "PurePosixPath", "Decimal", "Fraction", "UUID"}
_OF_OBJECTS = {"parameters", "modules", "children", "buffers"}
_ATOMS = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.ListComp, ast.Tuple, ast.Dict, ast.DictComp
)  # fmt: skip


class SetOrder(Rule):
    """Sort a set before its order is used."""

    name = "set-order"
    kinds = frozenset({SourceKind.SET_ORDER, SourceKind.OBJECT_SET_ORDER})
    message = (
        "The order of a set of texts depends on the hash seed, which Python draws anew for each process; that of "
        "objects, on where they are in memory."
    )
    before = 'names = {"cat", "dog"}\nindex = {name: n for n, name in enumerate(names)}\n'
    after = 'names = {"cat", "dog"}\nindex = {name: n for n, name in enumerate(sorted(names))}\n'
    never = (
        "It never sorts what Python cannot compare: such a set becomes a dict, which keeps the order of insertion. "
        "A set whose order has no effect, as in a sum of integers, stays."
    )

    def __init__(self, names: Iterable[str] = ()) -> None:
        """``names`` are variables that were seen to be sets."""
        self._names = frozenset(names)

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        if not isinstance(node, ast.expr) or not page.reader.is_taken_set(node, self._names):
            return None
        if isinstance(page.reader.parent(node), ast.Attribute):  # pop
            return UNSAFE
        if any(waiting(value) is not None for value in page.reader.values(node)):
            return _as_waited_for(page, node)
        if not _unsortable(page, node):
            return Fix(_sorted(page, node))
        return _keeping_order(page, node)


def _keeping_order(page: SourceText, node: ast.expr) -> Fix:
    """Return the fix that makes a set a dict, also where it is made, if it has a name and nothing needs a set."""
    start, end = page.span(node)
    match node:
        case ast.Set():
            return Fix(((start, start + 1, "dict.fromkeys(["), (end - 1, end, "])")))
        case ast.SetComp(generators=generators):
            waits = any(part.is_async for part in generators) or any(isinstance(n, ast.Await) for n in ast.walk(node))
            return UNSAFE if waits else Fix(((start, start + 1, "dict.fromkeys("), (end - 1, end, ")")))
        case ast.Call(func=ast.Name(), args=[argument]) if not page.reader.is_set(argument):
            return Fix(page.instead(node.func, "dict.fromkeys"))
        case ast.Name():
            uses = [one for one in ast.walk(page.reader.tree) if isinstance(one, ast.Name) and one.id == node.id]
            if not all(isinstance(one.ctx, ast.Store) or _is_only_read(page, one) for one in uses):
                return UNSAFE
            fixes = [UNSAFE if one is None else _keeping_order(page, one) for one in page.reader.values(node)]
            edits = tuple(edit for one in fixes for edit in one.edits)
            return Fix(edits) if all(one.edits for one in fixes) else UNSAFE
        case _:
            return UNSAFE


_READ_BY = frozenset(("enumerate", "filter", "iter", "len", "list", "map", "reversed", "set", "sorted", "tuple", "zip"))
"""Functions that take a dict as they take a set."""


def _is_only_read(page: SourceText, name: ast.Name) -> bool:
    """Return whether something is done with a set that can be done with the keys of a dict."""
    match page.reader.parent(name):
        case ast.For(iter=taken) | ast.comprehension(iter=taken):
            return taken is name
        case ast.Call(func=ast.Name(id=function)):
            return function in _READ_BY
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[taken]):
            return taken is name
        case _:
            return False


def _as_waited_for(page: SourceText, done: ast.expr) -> Fix:
    """Return the fix that takes futures as they were passed to wait(), if it returns when all are done."""
    values = page.reader.values(done)
    call = waiting(values[0]) if len(values) == 1 else None
    futures = call.args[0] if call is not None and len(call.args) + len(call.keywords) == 1 else None
    if not isinstance(futures, ast.Name | ast.Attribute) or page.reader.is_set(futures):
        return UNSAFE
    return Fix(page.instead(done, ast.unparse(futures)))


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


class ListingOrder(Rule):
    """Sort a listing of files."""

    name = "listing-order"
    kinds = frozenset({SourceKind.LISTING_ORDER})
    message = (
        "A folder lists its files in the order in which the file system has them, which is another on another machine."
    )
    before = 'import os\n\nfiles = os.listdir("data")\n'
    after = 'import os\n\nfiles = sorted(os.listdir("data"))\n'
    never = (
        "It never changes `os.walk`, whose folders are visited while it lists them, nor an iterator that is used as "
        "one later."
    )

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        if not isinstance(node, ast.Call):
            return None
        if not is_listing(page, node):
            return None
        if page.full(node.func) in ("os.walk", "os.fwalk"):
            return UNSAFE
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


class CompletionOrder(Rule):
    """Take results in the order of submission."""

    name = "completion-order"
    kinds = frozenset({SourceKind.COMPLETION_ORDER, SourceKind.COMPLETION_ORDER_OPTION})
    message = "Whichever worker is ready first has its result taken first, and that depends on the load of the machine."
    before = "for job in as_completed(jobs):\n    total += job.result()\n"
    after = "for job in jobs:\n    total += job.result()\n"
    never = (
        "It never changes a loop over futures in a set, which has no order of submission, nor over coroutines, and "
        "never makes workers wait for each other: only what is taken from them has an order."
    )

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
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
    values = page.reader.values(futures) if isinstance(futures, ast.Name | ast.Attribute) else [futures]
    if isinstance(page.reader.parent(call), ast.AsyncFor) or any(map(page.reader.is_set, filter(None, values))):
        return UNSAFE
    if page.full(call.func) == "asyncio.as_completed" and not all(map(_are_tasks, values)):
        return UNSAFE  # coroutines begin when they are awaited
    (start, end), (first, stop) = page.span(call), page.span(futures)
    if isinstance(futures, ast.GeneratorExp):  # all its calls must be made before the first result is awaited
        return Fix(_taken(page, call, ((start, first + 1, "["), (stop - 1, end, "]"))))
    opened, closed = ("", "") if isinstance(futures, _ATOMS) else ("(", ")")
    if _changes_within(page, call, futures):
        opened, closed = "list(", ")"
    return Fix(_taken(page, call, ((start, first, opened), (stop, end, closed))))


def _are_tasks(node: ast.expr | None) -> bool:
    match node:
        case ast.ListComp(elt=ast.Call(func=made)) | ast.GeneratorExp(elt=ast.Call(func=made)):
            return last(made) in ("create_task", "ensure_future")
        case _:
            return False


def _changes_within(page: SourceText, call: ast.Call, futures: ast.expr) -> bool:
    """Whether the loop over these futures may add or remove some."""
    loop: ast.AST = call
    while not isinstance(loop, ast.stmt):
        loop = page.reader.parent(loop)
    name = ast.unparse(futures)
    for node in ast.walk(loop) if isinstance(loop, ast.For) else ():
        match node:
            case ast.Call(func=ast.Attribute(value=changed, attr=attr)) if attr in _CHANGING:
                pass
            case ast.Subscript(value=changed, ctx=ast.Store() | ast.Del()):
                pass
            case _:
                continue
        if ast.unparse(changed) == name:
            return True
    return False


_CHANGING = {"append", "clear", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"}


def _keyword(page: SourceText, call: ast.Call) -> Fix | None:
    unordered = argument_of(call, "return_as")
    if isinstance(unordered, ast.Constant) and unordered.value == UNORDERED:
        return Fix(page.instead(unordered, '"generator"'))
    for keyword in call.keywords:
        if keyword.arg and last(call.func) in _IN_ORDER.get(keyword.arg, ()) and _is_false(keyword.value):
            return fixed(without(page, call, keyword.arg))
    return None


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


class AddressOrder(Rule):
    """Keep the order of a list that is sorted by id()."""

    name = "address-order"
    kinds = frozenset({SourceKind.ADDRESS})
    message = "`id()` is where an object is in memory, which is another place in each run."
    before = "layers = [encoder, decoder]\nfor layer in sorted(layers, key=id):\n    train(layer)\n"
    after = "layers = [encoder, decoder]\nfor layer in list(layers):\n    train(layer)\n"
    never = "It never replaces an address that is used as a number, nor an order of what is not evidently a list."

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        match node:
            case ast.Call(
                func=ast.Name(id="sorted"),
                args=[ast.Name() as values],
                keywords=[ast.keyword(arg="key", value=ast.Name(id="id"))],
            ) if bound := page.reader.values(values):
                if not all(isinstance(one, ast.List | ast.ListComp | ast.Tuple) for one in bound):
                    return UNSAFE
                (start, end), inner = page.span(node), page.text(*page.span(values))
                return Fix(page.difference(start, end, f"list({inner})"))
            case _:
                return None


class RowOrder(Rule):
    """Keep the order of rows in Polars."""

    name = "row-order"
    kinds = frozenset({SourceKind.ROW_ORDER})
    message = "Polars returns groups and unique rows in the order in which its threads find them, unless it is told."
    before = 'import polars as pl\n\nmeans = pl.read_csv(path).group_by("kind").mean()\n'
    after = 'import polars as pl\n\nmeans = pl.read_csv(path).group_by("kind", maintain_order=True).mean()\n'
    never = "It never changes a call that says whether it keeps the order."

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        match node:
            case ast.Call(func=ast.Attribute(value=value)) if in_any_order(node) and page.is_made_by(value, "polars"):
                return fixed(with_keyword(page, node, "maintain_order", "True"))
            case _:
                return None


_RACING = {
    # https://radimrehurek.com/gensim/models/word2vec.html: "you must also limit the model to a single worker thread"
    **{("gensim", name): {"workers": "1"} for name in ("Doc2Vec", "FastText", "Word2Vec")},
    # https://github.com/py-why/EconML/blob/main/econml/grf/_base_grf.py: threads add up predictions as they complete
    **{
        ("econml", name): {"n_jobs": "1"}
        for name in ("CausalForest", "CausalForestDML", "CausalIVForest", "ForestDRLearner", "RegressionForest")
    },
    # https://benfred.github.io/implicit/api/models/cpu/bpr.html: "num_threads"; without a seed, the order is random too
    ("implicit", "BayesianPersonalizedRanking"): {"num_threads": "1", "random_state": "0"},
}
"""What trains with threads that write to the same weights: its library and name, and what makes two runs equal."""

_FORESTS = {
    # _accumulate_prediction in https://github.com/scikit-learn/scikit-learn/blob/main/sklearn/ensemble/_forest.py:
    # threads add up the predictions of trees as they complete. sksurv's forests call the same function.
    *(("sklearn", f"{kind}{task}") for kind in ("ExtraTrees", "RandomForest") for task in ("Classifier", "Regressor")),
    ("sksurv", "ExtraSurvivalTrees"),
    ("sksurv", "RandomSurvivalForest"),
}
"""What predicts with threads that add to one sum, if ``n_jobs`` says so: its library and name."""

_RACING_METHODS = {
    # https://github.com/nmslib/hnswlib#api-description: "num_threads sets the number of cpu threads to use"
    ("hnswlib", "add_items"): {"num_threads": "1"},
}
"""The same of methods of objects that a library made."""


class OneWorker(Rule):
    """Let one thread work where several write to the same weights, or add to the same sum."""

    name = "one-worker"
    kinds = frozenset[SourceKind]()
    message = "What they write arrives in any order, or overwrites what others wrote, so no seed makes two runs equal."
    before = "from gensim.models import Word2Vec\n\nmodel = Word2Vec(sentences, workers=4)\n"
    after = "from gensim.models import Word2Vec\n\nmodel = Word2Vec(sentences, workers=1)\n"
    never = "It never changes what trains in several threads with the same result, such as a gradient boosting."

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        if not isinstance(node, ast.Call):
            return None
        for keyword, value in self._needed(page, node).items():
            passed = argument_of(node, keyword)
            if given_otherwise(node):
                return UNSAFE
            if passed is None or (value == "1" and ast.unparse(passed) != value):
                return fixed(with_keyword(page, node, keyword, value))
        return None

    def _needed(self, page: SourceText, node: ast.Call) -> Mapping[str, str]:
        if isinstance(node.func, ast.Attribute):
            for (library, method), keywords in _RACING_METHODS.items():
                if node.func.attr == method and page.is_made_by(node.func.value, library):
                    return keywords
        module, _, name = page.full(node.func).rpartition(".")
        of_library = (module.partition(".")[0], name)
        threads = argument_of(node, "n_jobs") if of_library in _FORESTS else None
        if threads is not None and ast.unparse(threads) not in ("1", "None"):
            return {"n_jobs": "1"}
        return _RACING.get(of_library, {})
