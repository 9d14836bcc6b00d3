"""Rules for generators without a seed, and for seeds that are others in each run."""

import ast
import re

from detaudit.model import SourceKind
from detaudit.rules.calls import with_first
from detaudit.rules.rule import UNSAFE, Fix, Rule
from detaudit.rules.times import indexes, is_handed_on, is_of_item, starts_worker
from detaudit.source.randomness import NUMPY, defaults, has_threads, shared_draws
from detaudit.source.text import SourceText, TextEdit, argument_of, given_otherwise, last

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

_BOOSTER_SEEDS = {
    *_SEED_KEYWORDS,
    *(f"{what}_seed" for what in ("bagging", "data_random", "drop", "extra", "feature_fraction", "objective")),
}

_CLOCKS = {"time", "datetime", "uuid", "secrets"}
_CLOCK_CALLS = {"now", "utcnow", "today", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time_ns"}
_PROCESS_CALLS = {"getpid", "getppid", "urandom", "get_ident", "get_native_id", "uuid1", "uuid4"}


class UnseededGenerator(Rule):
    """Give a generator a seed."""

    name = "unseeded-generator"
    kinds = frozenset({SourceKind.UNSEEDED, SourceKind.ENTROPY})
    message = "A generator without a seed takes one from the operating system, and no global seed reaches it."
    before = "rng = np.random.default_rng()\nfor step in range(3):\n    noise = np.random.default_rng().normal()\n"
    after = (
        "rng = np.random.default_rng(0)\nfor step in range(3):\n    noise = np.random.default_rng([0, step]).normal()\n"
    )
    never = (
        "It never puts a constant seed where code runs again: each item would get the same noise. There the seed "
        "has the number of the item, or in a data set of torch is drawn from its global generator."
    )

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        if not isinstance(node, ast.Call):
            return None
        name = last(node.func)
        if factories := _default_factories(page, node):
            return _seeded_by_default(page, node, factories)
        if page.full(node.func) == "random.SystemRandom":
            return _instead_of_the_system(page, node)
        if name not in {"from_non_deterministic_state", "seed", "seed_all", "seed_everything", *_GENERATORS}:
            return None
        option = _optional_seed(page, node)
        if option is None and not _takes_a_seed(node):
            return None
        seed = _seed_of(page, node, arrays=_takes_several(page, node))
        if seed is None:
            return UNSAFE
        needs = _needs(page, seed)
        if option is not None:
            said = ast.unparse(option)
            return Fix(page.instead(option, f"{seed} if {said} is None else {said}"), needs)
        if name == "from_non_deterministic_state":
            return Fix((*page.renamed(node, "from_seed"), *with_first(page, node, seed)), needs)
        renamed = page.renamed(node, _method(page, node)) if name in ("seed", "seed_all") else ()
        return Fix((*renamed, *_seed(page, node, seed)), needs)


def _default_factories(page: SourceText, call: ast.Call) -> list[ast.expr]:
    """Return the kinds of generators that a call makes for fields of its class, without a seed."""
    classes = (one for one in page.reader.tree.body if isinstance(one, ast.ClassDef) and one.name == last(call.func))
    fields = [one.value for kind in classes for one in kind.body if isinstance(one, ast.AnnAssign | ast.Assign)]
    made = [argument_of(one, "default_factory", "factory") for one in fields if isinstance(one, ast.Call)]
    return [one for one in made if one is not None and last(one) in _GENERATORS]


def _seeded_by_default(page: SourceText, call: ast.Call, factories: list[ast.expr]) -> Fix:
    seed = _seed_of(page, call, arrays=True) if indexes(page.reader, call) == () else None
    if seed is None or len(factories) > 1:
        return UNSAFE
    return Fix(page.instead(factories[0], f"lambda: {ast.unparse(factories[0])}({seed})"), _needs(page, seed))


def _instead_of_the_system(page: SourceText, call: ast.Call) -> Fix:
    """Return what draws from a generator with a seed instead of the system's entropy, which takes none."""
    seed = _seed_of(page, call, arrays=False)
    if seed is None or call.args or call.keywords:
        return UNSAFE
    needs = () if isinstance(call.func, ast.Attribute) else ("from random import Random",)
    return Fix((*page.renamed(call, "Random"), *with_first(page, call, seed)), needs)


def _seed_of(page: SourceText, node: ast.AST, *, arrays: bool) -> str | None:
    """Return a seed for what is evaluated here, another one each time; None if none is at hand.

    Only ``arrays`` of integers take several numbers: NumPy's generators mix them. In a worker of torch, the seed that
    it has differs from those of other workers and of other epochs.
    """
    torch = page.name_of("torch")
    if torch and is_of_item(page.reader, node):  # the global generator of torch, of which each worker has its own
        return f"{torch}.randint(2**62, ()).item()"
    names = indexes(page.reader, node)
    if page.imports.get("torch") == "torch" and starts_worker(page.reader, node):
        return "torch.initial_seed() % 2**32"
    if names is None:
        return None
    if not names and _has_ranks(page):
        return f"[0, {_RANK}]" if arrays else _RANK
    if not names:
        return "0"
    if arrays:
        return f"[0, {', '.join(names)}]"
    return names[0] if len(names) == 1 else None


_RANK = 'int(os.environ.get("RANK", 0))'
_RANKED = re.compile(r"\bRANK\b|\bget_rank\(|\btorch\.distributed\b|\bprocess_index\b")


def _has_ranks(page: SourceText) -> bool:
    """Whether several processes run a file, which draw other numbers and still shall."""
    return any(map(_RANKED.search, page.lines))


def _needs(page: SourceText, seed: str) -> tuple[str, ...]:
    return page.importing("os") if _RANK in seed else ()


def is_repeated_call(page: SourceText, node: ast.AST) -> bool:
    """Whether this makes or seeds a generator, maybe more than once, and no name numbers those times."""
    if not isinstance(node, ast.Call) or _seed_of(page, node, arrays=True) is not None:
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
    seed = _given_seed(call)
    return is_none(seed) if seed is not None else not given_otherwise(call)


def _given_seed(call: ast.Call) -> ast.expr | None:
    """Return the seed that a call is given, None if it is given none."""
    return call.args[0] if call.args else argument_of(call, *_SEED_ARGUMENTS)


def _optional_seed(page: SourceText, call: ast.Call) -> ast.expr | None:
    """Return the seed that a call is given if the file shows that it is None unless somebody says otherwise."""
    seed = _given_seed(call)
    return seed if seed is not None and not is_none(seed) and _may_be_none(page, seed) else None


def _may_be_none(page: SourceText, node: ast.expr) -> bool:
    """Whether a variable, a parameter, a field or an option has None as its default."""
    tree = page.reader.tree
    match node:
        case ast.Name(id=name):
            if any(value is not None and is_none(value) for value in page.reader.values(node)):
                return True
            scope = page.reader.scope(node)
            return isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) and any(
                parameter == name and is_none(default) for parameter, default in defaults(scope.args).items()
            )
        case ast.Attribute(attr=name):
            if any(value is not None and _is_default(page, value) for value in page.reader.values(node)):
                return True
            fields = (one for kind in ast.walk(tree) if isinstance(kind, ast.ClassDef) for one in kind.body)
            if any(isinstance(one, ast.AnnAssign) and ast.unparse(one.target) == name and one.value is not None
                   and is_none(one.value) for one in fields):  # fmt: skip
                return True
            return any(isinstance(one, ast.Call) and _is_option(one, name) for one in ast.walk(tree))
        case _:
            return False


def _is_default(page: SourceText, value: ast.expr) -> bool:
    """Whether what an attribute is bound to is None, or a parameter that is None by default."""
    return is_none(value) or (isinstance(value, ast.Name) and _may_be_none(page, value))


def _is_option(call: ast.Call, name: str) -> bool:
    """Whether a call declares an option of this name for argparse without a default."""
    if last(call.func) != "add_argument" or argument_of(call, "action", "required") is not None:
        return False
    names = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    default = argument_of(call, "default")
    options = [one.removeprefix("--").replace("-", "_") for one in names if one.startswith("--")]
    return name in options and (default is None or is_none(default))


def is_none(node: ast.expr) -> bool:
    """Whether an expression is None."""
    return isinstance(node, ast.Constant) and node.value is None


def _seed(page: SourceText, call: ast.Call, new: str) -> tuple[TextEdit, ...]:
    """Return the edit that gives a call a seed, in place of None if it has that."""
    seed = _given_seed(call)
    return page.instead(seed, new) if seed is not None else with_first(page, call, new)


class GeneratorOnce(Rule):
    """Make or seed a generator once, above what runs again and again."""

    name = "generator-once"
    kinds = frozenset({SourceKind.UNSEEDED})
    message = (
        "A generator that is made or seeded again and again, without a seed, takes another one from the operating "
        "system each time."
    )
    before = "for x in rows:\n    noise = x + np.random.default_rng().normal()\n"
    after = "generator = np.random.default_rng(0)\nfor x in rows:\n    noise = x + generator.normal()\n"
    never = (
        "It never makes threads or workers share a generator, which they would draw from in any order, or each the "
        "same numbers; nor does it change a file that is not evidently the script itself, which workers may import."
    )

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        match node:
            case ast.Call(func=function) if last(function) in _DRAWING and _is_repeated_without_seed(page, node):
                name = _free_name(page)
                edits = page.instead(node, name)
                made = f"{name} = {ast.unparse(function)}"
            case ast.Expr(value=ast.Call(func=function) as call) if page.full(function) in _RESEEDING:
                if not _is_repeated_without_seed(page, call):
                    return None
                start, end = page.span(node)
                edits = ((start, end, "pass"),) if page.is_alone(node) else ((*page.whole_lines(node), ""),)
                made = ast.unparse(function).removesuffix(last(function)) + _RESEEDING[page.full(function)]
            case _:
                return None
        statement: ast.AST = node
        while page.reader.parent(statement) is not page.reader.tree:
            statement = page.reader.parent(statement)
        if not isinstance(statement, ast.stmt) or not _is_script(page) or has_workers(page) or _has_ranks(page):
            return UNSAFE
        gap = "\n\n\n" if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else "\n"
        start, _ = page.whole_lines(statement)
        return Fix(((start, start, f"{made}(0){gap}"), *edits))


def _is_repeated_without_seed(page: SourceText, call: ast.Call) -> bool:
    return _takes_a_seed(call) and _seed_of(page, call, arrays=_takes_several(page, call)) is None


def _takes_several(page: SourceText, call: ast.Call) -> bool:
    """Whether what a call seeds takes several numbers as its seed."""
    return last(call.func) in (*NUMPY, "default_rng") or page.full(call.func) == "numpy.random.seed"


def _free_name(page: SourceText) -> str:
    nodes = ast.walk(page.reader.tree)
    names = {one.id if isinstance(one, ast.Name) else one.arg for one in nodes if isinstance(one, ast.Name | ast.arg)}
    return next(one for one in (f"{'shared_' * n}generator" for n in range(len(names) + 1)) if one not in names)


_RESEEDING = {"random.seed": "seed", "numpy.random.seed": "seed", "torch.seed": "manual_seed"}
"""Functions that seed a global generator anew, and what seeds it with a number."""

_DRAWING = {"default_rng", "RandomState", "Random", *NUMPY} - {"SeedSequence"}
"""What one may draw from again and again: what is made of one SeedSequence each time draws the same numbers."""

_WORKERS = {"DataLoader", "Parallel", "Pool", "Process", "ProcessPoolExecutor", "Thread", "ThreadPool", "spawn"}
_WORKERS |= {"ThreadPoolExecutor", "StatefulDataLoader", "remote", "to_thread", "start_new_thread"}
_WORKERS |= {"gather", "create_task", "ensure_future", "TaskGroup", "start_soon"}  # tasks take turns in any order
_WORKER_METHODS = {"apply_async", "imap", "imap_unordered", "map", "map_async", "run_in_executor", "starmap"}
_WORKER_KEYWORDS = {"dataloader_num_workers", "n_jobs", "num_workers", "use_multiprocessing", "workers"}


def has_workers(page: SourceText) -> bool:
    """Whether a file may start threads, processes or tasks, or hands functions on to what may."""
    nodes = list(ast.walk(page.reader.tree))
    called = [one for node in nodes for one in _called(node)]
    methods = any(isinstance(one, ast.Attribute) and one.attr in _WORKER_METHODS for one in called)
    keywords = any(isinstance(one, ast.keyword) and one.arg in _WORKER_KEYWORDS for one in nodes)
    return methods or keywords or any(last(one) in _WORKERS for one in called)


def _called(node: ast.AST) -> list[ast.expr]:
    """Return what a node calls or decorates with."""
    match node:
        case ast.Call(func=function):
            return [function]
        case ast.FunctionDef(decorator_list=decorators) | ast.ClassDef(decorator_list=decorators):
            return decorators
        case _:
            return []


def _is_script(page: SourceText) -> bool:
    """Whether a file does more at its top than to define things: loops, calls of its own functions, a main."""
    own = {one.name for one in page.reader.tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
    for statement in page.reader.tree.body:
        match statement:
            case ast.For() | ast.While() | ast.With() | ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                return True
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name in {"print", *own}:
                return True
            case _:
                pass
    return False


class GlobalGenerators(Rule):
    """Seed the global generators below the imports."""

    name = "global-generators"
    kinds = frozenset[SourceKind]()
    message = (
        "The functions of `random`, `numpy.random`, torch and TensorFlow draw from generators that begin anywhere."
    )
    before = "import random\n\norder = random.sample(range(9), 9)\n"
    after = "import random\n\nrandom.seed(0)\n\norder = random.sample(range(9), 9)\n"
    never = "It never seeds inside of loops and functions, where each pass would draw the same numbers."

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        return None


class WorkerSeed(Rule):
    """Seed the global generators at the start of what workers run."""

    name = "worker-seed"
    kinds = frozenset({SourceKind.UNSEEDED})
    message = (
        "Workers of joblib and of process pools have global generators of their own, which no seed in the script "
        "reaches."
    )
    before = (
        "def draw(i):\n    return np.random.normal()\n\n\n"
        "rows = Parallel(n_jobs=2)(delayed(draw)(i) for i in range(6))\n"
    )
    after = (
        "def draw(i):\n    np.random.seed(i)\n    return np.random.normal()\n\n\n"
        "rows = Parallel(n_jobs=2)(delayed(draw)(i) for i in range(6))\n"
    )
    never = (
        "It never gives two calls the same seed: the code has to show that each has another number. Threads share the "
        "generators, so what they run stays as it is."
    )

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return None
        drawn, function = page.full(node.func), page.reader.scope(node)
        module = next((one for one in _GLOBAL if drawn.startswith(f"{one}.")), None)
        if module is None or not isinstance(function, ast.FunctionDef) or not is_handed_on(page.reader, function):
            return None
        if any(isinstance(one, ast.Call) and last(one.func) in _SEEDING for one in ast.walk(function)):
            return None
        first = function.body[1 if ast.get_docstring(function, clean=False) is not None else 0 :][:1]
        names = indexes(page.reader, first[0]) if first else None
        if not names or len(names) != 1 or first[0].lineno == function.lineno or has_threads(page.reader.tree):
            return UNSAFE
        start, _ = page.span(first[0])
        name = ast.unparse(node.func).partition(".")[0]
        full = page.imports.get(name, name)
        if not f"{module}.".startswith(f"{full}."):  # nn, of torch
            name, full = page.name_of(module) or module, module
        called = f"{name}{module.removeprefix(full)}.{_GLOBAL[module]}"
        needs = () if module in page.imports.values() or full != module else (f"import {module}",)
        return Fix(((start, start, f"{called}({names[0]})\n{' ' * first[0].col_offset}"),), needs)


_GLOBAL = {"random": "seed", "numpy.random": "seed", "torch": "manual_seed"}
"""The modules whose functions draw from global generators, and what seeds those."""


class OwnGenerator(Rule):
    """Give each item that threads work on a generator of its own."""

    name = "own-generator"
    kinds = frozenset({SourceKind.SHARED_GENERATOR})
    message = "Threads that share a generator take its numbers in the order in which they happen to come."
    before = (
        "rng = np.random.default_rng(0)\n\n\ndef draw(i):\n    return rng.normal()\n\n\n"
        "with ThreadPoolExecutor(4) as pool:\n    rows = list(pool.map(draw, range(6)))\n"
    )
    after = (
        "rng = np.random.default_rng(0)\n\n\ndef draw(i):\n    rng = np.random.default_rng([0, i])\n"
        "    return rng.normal()\n\n\n"
        "with ThreadPoolExecutor(4) as pool:\n    rows = list(pool.map(draw, range(6)))\n"
    )
    never = "It never gives two calls the same seed: the code has to show that each has another number."

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        if not isinstance(node, ast.Call) or not any(node is one for one in shared_draws(page.reader)):
            return None
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        function = page.reader.scope(node)
        if not isinstance(owner, ast.Name) or not isinstance(function, ast.FunctionDef):
            return UNSAFE
        first = function.body[1 if ast.get_docstring(function, clean=False) is not None else 0 :][:1]
        names = indexes(page.reader, first[0]) if first and is_handed_on(page.reader, function) else None
        if not names or len(names) != 1 or first[0].lineno == function.lineno or _is_global(function, owner.id):
            return UNSAFE
        match page.reader.values(owner):
            case [ast.Call(func=made, args=[seed], keywords=[])] if page.full(made) in _SEEDED_BY_LISTS:
                parts = f"[{page.text(*page.span(seed))}, {names[0]}]"
            case [ast.Call(func=made, args=[seed], keywords=[])] if page.full(made) == "random.Random":
                parts = f"str([{page.text(*page.span(seed))}, {names[0]}])"
            case _:
                return UNSAFE
        start, _ = page.span(first[0])
        new = f"{owner.id} = {page.text(*page.span(made))}({parts})\n{' ' * first[0].col_offset}"
        return Fix(((start, start, new),))


_SEEDED_BY_LISTS = {"numpy.random.default_rng", "numpy.random.RandomState"}
"""What makes a generator from a list of numbers too, so that lists that differ give other numbers."""


def _is_global(function: ast.FunctionDef, name: str) -> bool:
    """Whether a function says that a name is not its own."""
    nodes = (one for one in ast.walk(function) if isinstance(one, ast.Global | ast.Nonlocal))
    return any(name in one.names for one in nodes)


class MovingSeed(Rule):
    """Replace a seed that is read from the clock or the process."""

    name = "moving-seed"
    kinds = frozenset({SourceKind.CLOCK, SourceKind.PROCESS_ID, SourceKind.ENTROPY})
    message = (
        "The clock, the ID of a process and entropy of the system are others in each run, and so is a seed that is "
        "computed of them."
    )
    before = "seed = int(time.time())\nrng = np.random.default_rng(seed)\n"
    after = "seed = 0\nrng = np.random.default_rng(seed)\n"
    never = (
        "It never replaces a time that is no seed: what a rate or a limit should be instead, nobody but you can tell."
    )

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        if not isinstance(node, ast.Call):
            return None
        seeds = [keyword.value for keyword in node.keywords if keyword.arg in _SEED_KEYWORDS]
        if last(node.func) in _SEEDING or page.full(node.func) in ("jax.random.key", "random.key"):
            seeds += [
                *node.args,
                *(keyword.value for keyword in node.keywords if keyword.arg in ("key", "entropy", "a")),
            ]
        for seed in seeds:
            if _moves(page, seed):
                return _replaced(page, seed)
            values = _bound_to(page, seed)
            if any(value is not None and _moves(page, value) for value in values):
                return _replaced(page, seed) if _names_something(page, seed) else _where_bound(page, values)
            if not values and _is_of_moving_values(page, seed):
                return _replaced(page, seed)
        return None


def _is_of_moving_values(page: SourceText, seed: ast.expr) -> bool:
    """Whether all variables of a seed have values that move, as in ``int(today.strftime("%H%M%S"))``.

    Of ``base + index``, the rest has to stay.
    """
    called = {one.func for one in ast.walk(seed) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)}
    names = [one for one in ast.walk(seed) if isinstance(one, ast.Name) and one not in called]
    bound = [page.reader.values(one) for one in names if one.id not in page.imports]
    return bool(bound) and all(
        values and all(one is not None and _moves(page, one) for one in values) for values in bound
    )


def _bound_to(page: SourceText, seed: ast.expr) -> list[ast.expr | None]:
    """Return everything that a seed may be: what a name, an attribute, a parameter or a key of a dict is bound to."""
    if isinstance(seed, ast.Name | ast.Attribute):
        return page.reader.values(seed)
    if isinstance(seed, ast.Subscript) and isinstance(seed.value, ast.Name) and isinstance(seed.slice, ast.Constant):
        key, dicts = seed.slice.value, page.reader.values(seed.value)
        if len(dicts) == 1 and isinstance(dicts[0], ast.Dict):
            pairs = zip(dicts[0].keys, dicts[0].values, strict=True)
            return [item for one, item in pairs if isinstance(one, ast.Constant) and one.value == key]
    return []


def _names_something(page: SourceText, seed: ast.expr) -> bool:
    """Whether a seed is also a part of a text that is not printed: a folder of each run has its name of it."""
    name = ast.unparse(seed)
    for node in ast.walk(page.reader.tree):
        if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) == name:
            above: ast.AST = node
            while not isinstance(above, ast.stmt | ast.JoinedStr):
                above = page.reader.parent(above)
            outer = page.reader.parent(above)
            printed = isinstance(outer, ast.Call) and last(outer.func) in _PRINTING
            if isinstance(above, ast.JoinedStr) and not printed:
                return True
    return False


_PRINTING = {"print", "debug", "info", "warning", "log", "echo", "write"}


class BoosterSeed(Rule):
    """Replace a seed that moves among the parameters of a booster."""

    name = "booster-seed"
    kinds = frozenset({SourceKind.CLOCK, SourceKind.PROCESS_ID})
    message = (
        "XGBoost, LightGBM and CatBoost have constant seeds unless they are told others, in a dict of parameters or "
        "by a keyword."
    )
    before = 'params = {"eta": 0.1, "seed": int(time.time())}\n'
    after = 'params = {"eta": 0.1, "seed": 0}\n'
    never = "It never adds a seed: without one, a booster draws the same numbers in each run."

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        match node:
            case ast.Dict(keys=keys, values=values):
                named = [(one.value, v) for one, v in zip(keys, values, strict=True) if isinstance(one, ast.Constant)]
            case ast.Call(keywords=keywords):
                named = [(one.arg, one.value) for one in keywords if one.arg not in _SEED_KEYWORDS]
            case _:
                return None
        moving = (value for name, value in named if name in _BOOSTER_SEEDS and _moves(page, value))
        return next((_replaced(page, value) for value in moving), None)


class OptionSeed(Rule):
    """Replace the default of an option, or of a field of a configuration, that is a seed and moves."""

    name = "option-seed"
    kinds = frozenset({SourceKind.CLOCK, SourceKind.PROCESS_ID})
    message = "The default of an option is computed when the script starts: in each run, it is another seed."
    before = 'parser.add_argument("--seed", type=int, default=int(time.time()))\n'
    after = 'parser.add_argument("--seed", type=int, default=0)\n'
    never = "It never changes the default of an option whose name does not say that it is a seed."

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        match node:
            case ast.Call(func=function) if last(function) in ("add_argument", "option"):
                default = argument_of(node, "default")
                names = [str(one.value) for one in node.args if isinstance(one, ast.Constant)]
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                factory = argument_of(value, "default_factory", "factory") if isinstance(value, ast.Call) else None
                default, names = factory.body if isinstance(factory, ast.Lambda) else value, [name]
            case _:
                return None
        if default is None or not any("seed" in name.lower() for name in names) or not _moves(page, default):
            return None
        in_factory = isinstance(page.reader.parent(default), ast.Lambda)  # for each object, as a default is
        return Fix(page.instead(_moving(page, default), "0")) if in_factory else _replaced(page, default)


def _where_bound(page: SourceText, values: list[ast.expr | None]) -> Fix:
    """Edit the line that computes a seed, so that every use of it gets the same seed."""
    value = values[0]
    if len(values) > 1 or value is None or value.lineno != value.end_lineno:
        return UNSAFE
    return _replaced(page, value)


def _replaced(page: SourceText, seed: ast.expr) -> Fix:
    new = _seed_of(page, seed, arrays=False)
    if new is None:
        return UNSAFE
    return Fix(page.instead(_moving(page, seed), new), _needs(page, new))


def _moving(page: SourceText, seed: ast.expr) -> ast.expr:
    """Return the part of a seed that moves if it may be something else, such as the value of a variable, which stays.

    That is the whole seed if another part moves too.
    """
    node: ast.AST = seed
    while len(moving := [child for child in ast.iter_child_nodes(node) if _moves(page, child)]) == 1:
        match node, moving[0]:
            case ast.BoolOp(), ast.expr() as choice:
                return choice
            case ast.IfExp(test=test), ast.expr() as choice if choice is not test:
                return choice
            case ast.Call(args=[_, default]), ast.expr() as choice if last(node.func) in ("get", "getenv"):
                return default if choice is default else seed
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.BitXor(), right=right), ast.expr() as choice:
                if not isinstance(right if choice is left else left, ast.Constant):
                    return choice
            case ((ast.List(elts=elements) | ast.Tuple(elts=elements)), ast.expr() as choice) if len(elements) > 1:
                return choice
        node = moving[0]
    return seed


def _moves(page: SourceText, node: ast.AST) -> bool:
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            name, full = last(one.func), page.full(one.func)
            if name in _CLOCK_CALLS | _PROCESS_CALLS or (full.split(".")[0] in _CLOCKS and "." in full):
                return True
    return False
