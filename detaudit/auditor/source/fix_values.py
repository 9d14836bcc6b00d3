"""How to edit what gives a different value in each run: seeds, hashes and uninitialized memory."""

import ast

from detaudit.auditor.source import repeats
from detaudit.auditor.source.scan import NUMPY, hashed
from detaudit.auditor.source.source_edits import UNSAFE, Fix, Page, given, last
from detaudit.model import SourceKind

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
_SEEDS = ("seed", "entropy", "key", "x", "a")
"""Keywords by which generators and seeding functions take a seed."""

_SEED_KEYWORDS = ("seed", "random_state", "random_seed", "rng_seed")
"""Keywords that are a seed, whoever takes them."""

_CLOCKS = {"time", "datetime", "uuid", "secrets"}
_CLOCK_CALLS = {"now", "utcnow", "today", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time_ns"}
_PROCESS_CALLS = {"getpid", "getppid", "urandom", "get_ident", "get_native_id", "uuid1", "uuid4"}
_ARRAYS = {"numpy", "torch", "cupy", "jax.numpy"}
_ZEROS = {"empty": "zeros", "empty_like": "zeros_like"}
_UNINITIALIZED_ONLY = {"torch.empty_strided", "torch.empty_permuted"}


def unseeded(page: Page, node: ast.AST) -> Fix | None:
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


def _seed_of(page: Page, node: ast.AST, *, arrays: bool) -> str | None:
    """Return a seed for what is evaluated here, another one each time; None if none is at hand.

    Only ``arrays`` of integers take several numbers: NumPy's generators mix them.
    """
    names = repeats.indexes(page.reader, node)
    if names is None:
        return None
    if not names:
        return "0"
    if arrays:
        return f"[0, {', '.join(names)}]"
    return names[0] if len(names) == 1 else None


def is_repeated(page: Page, node: ast.AST) -> bool:
    """Whether this makes or seeds a generator, maybe more than once, and no name numbers those times."""
    if not isinstance(node, ast.Call) or repeats.indexes(page.reader, node) is not None:
        return False
    return last(node.func) in {*_SEEDING, "from_non_deterministic_state"}


def _method(page: Page, call: ast.Call) -> str:
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
    seed = call.args[0] if call.args else given(call, *_SEEDS)
    return _is_none(seed) if seed is not None else not given_otherwise(call)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _seed(page: Page, call: ast.Call, new: str) -> tuple[tuple[int, int, str], ...]:
    """Return the edit that gives a call a seed, in place of None if it has that."""
    seed = call.args[0] if call.args else given(call, *_SEEDS)
    return page.instead(seed, new) if seed is not None else _seed_first(page, call, new)


def given_otherwise(call: ast.Call) -> bool:
    """Whether a call may have arguments that cannot be read here, such as ``*args``."""
    return any(keyword.arg is None for keyword in call.keywords)


def _seed_first(page: Page, call: ast.Call, seed: str) -> tuple[tuple[int, int, str], ...]:
    if call.keywords and not call.args:
        start = page.span(call.keywords[0])[0]
        return ((start, start, f"{seed}, "),)
    end = page.span(call)[1] - 1
    return ((end, end, seed),)


def moving_seed(page: Page, node: ast.AST) -> Fix | None:
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


def _where_bound(page: Page, values: list[ast.expr | None]) -> Fix:
    """Edit the line that computes a seed, so that every use of it gets the same seed."""
    value = values[0]
    if len(values) > 1 or value is None or value.lineno != value.end_lineno:
        return UNSAFE
    return _replaced(page, value)


def _replaced(page: Page, seed: ast.expr) -> Fix:
    new = _seed_of(page, seed, arrays=False)
    return UNSAFE if new is None else Fix(page.instead(seed, new))


def _moves(page: Page, node: ast.expr) -> bool:
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            name, full = last(one.func), page.full(one.func)
            if name in _CLOCK_CALLS | _PROCESS_CALLS or (full.split(".")[0] in _CLOCKS and "." in full):
                return True
    return False


def uninitialized_memory(page: Page, node: ast.AST) -> Fix | None:
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
    if given(node, "prototype") or (name == "empty" and given(node, "memory_format")):  # zeros has no such argument
        return UNSAFE
    zeros = _ZEROS[name]
    if isinstance(node.func, ast.Attribute):
        return Fix(page.renamed(node, zeros))
    needed = page.imports.get(zeros) != f"{module}.{zeros}"
    return Fix(page.instead(node.func, zeros), (f"from {module} import {zeros}",) if needed else ())


def _is_of_objects(call: ast.Call) -> bool:
    """Whether an array has the dtype object, which is filled with None."""
    kind = call.args[1] if len(call.args) > 1 else given(call, "dtype")
    return (isinstance(kind, ast.Name) and kind.id == "object") or (
        isinstance(kind, ast.Constant) and kind.value in ("O", "object")
    )


def salted_hash(page: Page, node: ast.AST) -> Fix | None:
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


def _has_address(page: Page, node: ast.expr) -> bool:
    """Whether the text of a value differs between runs, like the order of a set or the address of an object."""
    return (
        page.reader.is_set(node)
        or (isinstance(node, ast.Name) and node.id == "self")
        or (isinstance(node, ast.Call) and last(node.func) in ("object", "set", "frozenset"))
    )
