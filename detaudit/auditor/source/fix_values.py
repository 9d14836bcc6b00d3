"""How to edit what gives a different value in each run: seeds, hashes and uninitialized memory."""

import ast

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
    """Give an unseeded generator the seed 0."""
    if not isinstance(node, ast.Call):
        return None
    name = last(node.func)
    if name == "from_non_deterministic_state":
        return Fix((*page.renamed(node, "from_seed"), *_seed_first(page, node)))
    if name in ("seed", "seed_all"):
        edits = _seed(page, node)
        return None if edits is None else Fix((*page.renamed(node, _method(page, node)), *edits))
    if name in _GENERATORS or name == "seed_everything":
        edits = _seed(page, node)
        return None if edits is None else Fix(edits)
    return None


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


def _seed(page: Page, call: ast.Call) -> tuple[tuple[int, int, str], ...] | None:
    """Return the edit that gives a call the seed 0, None if it has a seed."""
    seed = call.args[0] if call.args else given(call, *_SEEDS)
    if isinstance(seed, ast.Constant) and seed.value is None:
        return page.instead(seed, "0")
    return _seed_first(page, call) if seed is None and not given_otherwise(call) else None


def given_otherwise(call: ast.Call) -> bool:
    """Whether a call may have arguments that cannot be read here, such as ``*args``."""
    return any(keyword.arg is None for keyword in call.keywords)


def _seed_first(page: Page, call: ast.Call) -> tuple[tuple[int, int, str], ...]:
    if call.keywords and not call.args:
        start = page.span(call.keywords[0])[0]
        return ((start, start, "0, "),)
    end = page.span(call)[1] - 1
    return ((end, end, "0"),)


def moving_seed(page: Page, node: ast.AST) -> Fix | None:
    """Replace a seed that is computed from the clock, the process ID or entropy by 0."""
    if not isinstance(node, ast.Call):
        return None
    seeds = [keyword.value for keyword in node.keywords if keyword.arg in _SEED_KEYWORDS]
    if last(node.func) in _SEEDING or page.full(node.func) in ("jax.random.key", "random.key"):
        seeds += [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg in ("key", "entropy", "a"))]
    for seed in seeds:
        if _moves(page, seed):
            return Fix(page.instead(seed, "0"))
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
    return Fix(page.instead(value, "0"))


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
