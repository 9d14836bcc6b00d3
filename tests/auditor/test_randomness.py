"""A line is named if it took no seed, or not the same one in every run."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from detaudit.auditor.lines import Hello, Source
from detaudit.auditor.randomness import Seen, seen_in, unfixed
from detaudit.auditor.traces import Process

AT = ("train.py", 3, "torch.manual_seed")


@given(st.lists(st.lists(st.integers(0, 2).map(str), min_size=1), min_size=1))
def test_seeds_that_differ_between_runs_are_named(values: list[list[str]]) -> None:
    runs: list[Seen] = [{AT: tuple(given_)} for given_ in values]
    found = unfixed(runs)
    assert bool(found) == (len({tuple(given_) for given_ in values}) > 1)
    assert all(source.what == "torch.manual_seed() with another seed in each run" for source in found)


def test_no_seed_is_named_even_if_only_one_run_came_by() -> None:
    (found,) = unfixed([{}, {("a.py", 1, "random.seed"): ("",)}])
    assert (found.file, found.line, found.what) == ("a.py", 1, "random.seed() without a seed")


def test_a_line_that_one_run_did_not_reach_is_no_source() -> None:
    assert unfixed([{AT: ("0",)}, {}, {AT: ("0",)}]) == ()


def test_files_are_told_from_the_working_directory() -> None:
    hello = Hello(1, 1, 1, (), "3", None, ())
    process = Process(hello, sources=[Source("f", "/w/a.py", 1, "0"), Source("f", "/wide/b.py", 2, "0")])
    assert {key[0] for key in seen_in([process], Path("/w"))} == {"a.py", "/wide/b.py"}
