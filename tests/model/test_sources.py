"""Which lines a flag fixes, and that every match in the configuration names lines that can be found."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detaudit.recorder
from detaudit.config.flags import load_catalogue
from detaudit.config.variations import load_variations
from detaudit.model import COMPLETION, ORDERS, SEEDING, Source, SourceKind, SourceMatch
from detaudit.recorder.randomness import draws, seeds
from detaudit.source import randomness

KINDS = st.sampled_from(SourceKind)
NAMES = st.lists(st.from_regex(r"[a-zA-Z_]\w{0,5}", fullmatch=True), min_size=1, max_size=4).map(".".join)
SOURCES = st.builds(Source, file=st.just("a.py"), line=st.just(1), kind=KINDS, call=NAMES)


def source(call: str = "", *generators: str, kind: SourceKind = SourceKind.UNSEEDED) -> Source:
    return Source(file="a.py", line=1, kind=kind, call=call, generators=generators)


@given(SOURCES)
def test_the_empty_match_matches_nothing(line: Source) -> None:
    assert not SourceMatch()
    assert not SourceMatch().matches(line)


@given(st.sets(KINDS, min_size=1), SOURCES)
def test_kinds_without_calls_match_all_lines_of_these_kinds(kinds: set[SourceKind], line: Source) -> None:
    match = SourceMatch(kinds=tuple(kinds))
    assert match
    assert match.matches(line) == (line.kind in kinds)


@given(st.sets(KINDS), NAMES, SOURCES)
def test_with_calls_both_the_kind_and_the_call_must_match(kinds: set[SourceKind], call: str, line: Source) -> None:
    match, of_any_kind = SourceMatch(kinds=tuple(kinds), calls=(call,)), SourceMatch(calls=(call,))
    assert match.matches(line) == (of_any_kind.matches(line) and (not kinds or line.kind in kinds))


@given(SOURCES)
def test_a_full_name_matches_itself(line: Source) -> None:
    assert SourceMatch(calls=(line.call,)).matches(line)


@given(NAMES, NAMES)
def test_a_name_of_a_function_or_of_a_method_matches_at_the_end_only(module: str, name: str) -> None:
    is_end = "." not in name or name[0].isupper()
    assert SourceMatch(calls=(name,)).matches(source(f"{module}.{name}")) == is_end
    assert not SourceMatch(calls=(name,)).matches(source(f"{name}.{module}-"))
    assert not SourceMatch(calls=(name,)).matches(source(f"a{name}"))


@pytest.mark.parametrize(
    ("call", "of", "matches"),
    [
        ("default_rng", "numpy.random.default_rng", True),
        ("default_rng", "default_rng", True),
        ("default_rng", "my_default_rng", False),
        ("Generator.seed", "torch.Generator.seed", True),
        ("Generator.seed", "MyGenerator.seed", False),
        ("random.seed", "random.seed", True),
        ("random.seed", "numpy.random.seed", False),
        ("numpy.random.seed", "random.seed", False),
        ("torch.empty", "torch.empty_like", False),
        ("default_rng", "", False),
    ],
)
def test_ends_of_names(call: str, of: str, matches: bool) -> None:
    assert SourceMatch(calls=(call,)).matches(source(of)) is matches


def test_generators_match_lines_that_draw_from_any_of_them() -> None:
    match = SourceMatch(calls=("random.seed",), generators=("random",))
    assert match.matches(source("random.shuffle", "random"))
    assert match.matches(source("sample", "numpy.random", "random"))
    assert match.matches(source("random.seed"))
    assert not match.matches(source("random.shuffle"))
    assert not match.matches(source("numpy.random.normal", "numpy.random"))
    of_draws = SourceMatch(kinds=(SourceKind.UNSEEDED,), generators=("random",))
    assert not of_draws.matches(source("random.shuffle", "random", kind=SourceKind.SEED))


def test_completion_orders_are_orders_and_seeds_are_not() -> None:
    assert COMPLETION < ORDERS
    assert not SEEDING & ORDERS


SYSTEM = (
    ("os.urandom", SourceKind.ENTROPY),
    ("uuid.uuid1", SourceKind.ENTROPY),
    ("os.listdir", SourceKind.LISTING_ORDER),
    ("os.scandir", SourceKind.LISTING_FILES),
    ("concurrent.futures.as_completed", SourceKind.COMPLETION_ORDER),
    ("concurrent.futures.wait", SourceKind.COMPLETION_ORDER),
    ("multiprocessing.Pool.imap_unordered", SourceKind.COMPLETION_ORDER),
    ("queue.Queue.get", SourceKind.COMPLETION_ORDER),
    ("DataLoader(in_order=False)", SourceKind.COMPLETION_ORDER_OPTION),
    *[
        (f"Dataset.{name}(deterministic=False)", SourceKind.COMPLETION_ORDER_OPTION)
        for name in ("interleave", "map", "batch", "with_options")
    ],
    *[(f"Dataset.{name}(num_parallel_calls)", SourceKind.UNORDERED_OPERATION) for name in ("interleave", "map")],
)
"""What the recorder reports besides the functions that take a seed."""


def test_the_recorder_reports_these_calls() -> None:
    folder = Path(detaudit.recorder.__file__).parent / "randomness"
    code = "".join(path.read_text() for path in folder.glob("*.py"))
    options = ("(deterministic=False)", "(num_parallel_calls)")  # of a tf.data.Dataset, whose methods are wrapped
    assert [call for call, _ in SYSTEM if f'"{call}"' not in code and not call.endswith(options)] == []


def recorded() -> list[Source]:
    """Return a line for every call that the recorder may report."""
    functions = {f"{module}.{name}" for module, names in seeds.FUNCTIONS.items() for name in names}
    calls = {seeds.ALIASES.get(name, name) for name in functions} | {"random.Random"}
    found = [source(call, kind=kind) for call in calls for kind in (SourceKind.UNSEEDED, *SEEDING)]
    found += [source(f"{module}.normal", module) for module in (*draws._KINDS, "tensorflow")]
    return found + [source(call, kind=kind) for call, kind in SYSTEM]


def scanned() -> list[Source]:
    """Return a line for every call that reading the code may report."""
    seeding = [f"{module}.seed()" for module in (*randomness._MODULES, "np.random", "generator")]
    classes = [f"{name}()" for name in randomness.NUMPY]
    memory = [f"{name}(3)" for name in randomness._UNINITIALIZED]
    order = ["list(set(x))", "hash(x)", "id(x) + 1", "x.new_empty(3)"]
    text = "\n".join([*seeding, *classes, *memory, *order])
    return [source(call, kind=kind) for _, kind, call in randomness.in_text(text.encode())]


LINES = [*recorded(), *scanned(), source(kind=SourceKind.OBJECT_SET_ORDER)]
MATCHES = [(row.id, row.matches) for rows in (load_catalogue(), load_variations()) for row in rows if row.matches]


def parts(match: SourceMatch) -> list[SourceMatch]:
    """Return a match for each call and each generator; for each kind if it has neither."""
    names: list[dict[str, Any]] = [{"calls": (call,)} for call in match.calls]
    names += [{"generators": (generator,)} for generator in match.generators]
    if names:
        return [msgspec.structs.replace(SourceMatch(kinds=match.kinds), **name) for name in names]
    return [SourceMatch(kinds=(kind,)) for kind in match.kinds]


@pytest.mark.parametrize(("row", "match"), MATCHES, ids=[row for row, _ in MATCHES])
def test_every_match_of_the_configuration_names_lines_that_can_be_reported(row: str, match: SourceMatch) -> None:
    never = [part for part in parts(match) if not any(part.matches(line) for line in LINES)]
    assert not never, row


def test_there_are_matches_in_both_tables() -> None:
    rows = {row for row, _ in MATCHES}
    assert {"numpy-seed", "python-sorted-listings", "system-aslr-off", "hash-seed", "listing-order"} <= rows
