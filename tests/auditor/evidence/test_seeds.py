"""A line is named if it took no seed, or not the same one in every run; what was seen to differ comes first."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.auditor.evidence.event_logs import Process
from detaudit.auditor.evidence.event_records import Hello, Source
from detaudit.auditor.evidence.seeds import Seen, seen_in, unfixed

AT = ("train.py", 3, "torch.manual_seed")


@given(st.lists(st.sets(st.integers(0, 2).map(str), min_size=1), min_size=1))
def test_seeds_that_differ_between_runs_are_named(values: list[set[str]]) -> None:
    runs: list[Seen] = [{AT: tuple(("seed", value) for value in given_)} for given_ in values]
    found = unfixed(runs)
    contradict = any(a - b and b - a for a in values for b in values)  # not only more of the same
    assert bool(found) == contradict
    assert all(source.what == "torch.manual_seed() with a seed that differs between runs" for source in found)


@pytest.mark.parametrize(
    ("kind", "values", "words"),
    [
        ("clock", ("17", "18"), "torch.manual_seed() with a seed that follows the clock"),
        ("process-id", ("17", "18"), "torch.manual_seed() with the process id as its seed"),
        ("listing-order", ("a/n", "b/n"), "torch.manual_seed() in an order that differs between runs"),
        ("listing-order", ("a/n", "b/m"), "torch.manual_seed() found other files in each run"),
        ("completion-order", (":1/a", ":1/b"), "torch.manual_seed() in an order of arrival that differs between runs"),
    ],
)
def test_a_line_is_told_by_what_it_did(kind: str, values: tuple[str, ...], words: str) -> None:
    (found,) = unfixed([{AT: ((kind, value),)} for value in values])
    assert found.what == words


@pytest.mark.parametrize("kind", ["seed", "clock", "process-id", "listing-order", "completion-order"])
def test_what_is_the_same_in_every_run_is_no_source(kind: str) -> None:
    assert unfixed([{AT: ((kind, "1"),)}] * 3) == ()


def test_a_seed_that_is_near_the_clock_in_one_run_is_near_it_by_chance() -> None:
    (found,) = unfixed([{AT: (("clock", "17"),)}, {AT: (("seed", "99"),)}])
    assert found.kind == "seed"


def test_no_seed_is_named_even_if_only_one_run_came_by() -> None:
    (found,) = unfixed([{}, {("a.py", 1, "random.seed"): (("unseeded", ""),)}])
    assert (found.file, found.line, found.what) == ("a.py", 1, "random.seed() without a seed")


def test_a_draw_from_a_global_generator_is_named_with_what_has_no_seed() -> None:
    (found,) = unfixed([{("a.py", 1, "numpy.random.normal"): (("unseeded", "numpy.random"),)}] * 2)
    assert found.what == "numpy.random.normal() without a seed: nobody seeded numpy.random"


def test_a_line_that_one_run_did_not_reach_is_no_source() -> None:
    assert unfixed([{AT: (("seed", "0"),)}, {}, {AT: (("seed", "0"),)}]) == ()


def test_arrivals_are_compared_where_as_many_have_come() -> None:
    def run(*values: str) -> Seen:
        return {AT: tuple(("completion-order", value) for value in values)}

    three, four = run(":1/a", ":2/b", ":3/c"), run(":1/a", ":2/b", ":4/d")
    assert unfixed([three, four]) == ()
    assert unfixed([run(":1/a", "Thread-1:1/c"), run(":1/a", "Thread-2:1/d")]) == ()
    assert unfixed([three, four, run(":1/a", ":2/b", ":4/e")]) != ()


def test_batches_without_order_are_named_even_if_only_one_run_came_by() -> None:
    (found,) = unfixed([{}, {("a.py", 1, "DataLoader(in_order=False)"): (("completion-order-option", ""),)}])
    assert found.what == "DataLoader(in_order=False) hands out batches as workers finish them"


def test_what_was_seen_to_differ_comes_first() -> None:
    entropy, unseeded = ("a.py", 1, "os.urandom"), ("a.py", 2, "random.Random")
    runs: list[Seen] = [
        {entropy: (("entropy", ""),), unseeded: (("unseeded", ""),), AT: (("seed", value),)} for value in "12"
    ]
    assert [source.kind for source in unfixed(runs)] == ["seed", "unseeded", "entropy"]


def test_files_are_told_from_the_working_directory() -> None:
    hello = Hello(1, 1, 1, (), "3", None, ())
    sources = [Source("seed", "f", "/w/a.py", 1, "0"), Source("seed", "f", "/wide/b.py", 2, "0")]
    sources.append(Source("setting", "f", "/w/c.py", 3, "True"))
    process = Process(hello, sources=sources)
    assert {key[0] for key in seen_in([process], Path("/w"))} == {"a.py", "/wide/b.py"}
