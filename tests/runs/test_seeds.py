"""A line is a source if it used no seed, or different ones between runs; what was observed to differ comes first."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit import wire
from detaudit.judge.seeds import Call, Calls, Seen, seen_in, sources
from detaudit.model import Source, SourceKind
from detaudit.runs.log import Process
from detaudit.runs.log_records import Hello, SourceLine

AT = ("train.py", 3, "torch.manual_seed")


def calls(kind: SourceKind, *values: str) -> Calls:
    return tuple(Call(kind, value) for value in values)


def source(kind: SourceKind) -> Source:
    return Source(file="train.py", line=3, kind=kind, call="torch.manual_seed")


@given(st.lists(st.sets(st.integers(0, 2).map(str), min_size=1), min_size=1))
def test_seeds_that_differ_between_runs_are_named(values: list[set[str]]) -> None:
    runs: list[Seen] = [{AT: calls(SourceKind.SEED, *given_)} for given_ in values]
    contradict = any(a - b and b - a for a in values for b in values)  # not only more of the same
    assert sources(runs) == ((source(SourceKind.SEED),) if contradict else ())


@given(st.sets(st.integers(0, 500), min_size=30), st.randoms(use_true_random=False))
def test_the_same_seeds_in_another_order_or_fewer_of_them_are_no_difference(
    numbers: set[int], chance: random.Random
) -> None:
    def run(seeds: list[int]) -> Seen:
        lowest = sorted(map(str, seeds), key=wire.seed_number)[: wire.MOST_SEEDS]
        early = [str(seed) for seed in chance.sample(seeds, 5)]  # recorded until lower ones came
        return {AT: calls(SourceKind.SEED, *dict.fromkeys([*early, *lowest]))}

    seeds = list(numbers)
    assert sources([run(seeds), run(seeds), run(seeds[:25])]) == ()
    assert sources([run(seeds), run([seed + 1000 for seed in seeds])]) == (source(SourceKind.SEED),)


@pytest.mark.parametrize(
    ("recorded", "values", "kind"),
    [
        (SourceKind.CLOCK, ("17", "18"), SourceKind.CLOCK),
        (SourceKind.PROCESS_ID, ("17", "18"), SourceKind.PROCESS_ID),
        (SourceKind.LISTING_ORDER, ("a/n", "b/n"), SourceKind.LISTING_ORDER),
        (SourceKind.LISTING_ORDER, ("a/n", "b/m"), SourceKind.LISTING_FILES),
        (SourceKind.COMPLETION_ORDER, (":1/a", ":1/b"), SourceKind.COMPLETION_ORDER),
    ],
)
def test_a_line_is_named_by_what_it_did(recorded: SourceKind, values: tuple[str, ...], kind: SourceKind) -> None:
    assert sources([{AT: calls(recorded, value)} for value in values]) == (source(kind),)


@pytest.mark.parametrize("kind", ["seed", "clock", "process-id", "listing-order", "completion-order"])
def test_what_is_the_same_in_every_run_is_no_source(kind: str) -> None:
    assert sources([{AT: calls(SourceKind(kind), "1")}] * 3) == ()


def test_a_seed_that_is_near_the_clock_in_one_run_is_near_it_by_chance() -> None:
    runs: list[Seen] = [{AT: calls(SourceKind.CLOCK, "17")}, {AT: calls(SourceKind.SEED, "99")}]
    assert sources(runs) == (source(SourceKind.SEED),)


def test_a_missing_seed_is_named_even_if_only_one_run_reached_the_line() -> None:
    found = sources([{}, {("a.py", 1, "random.seed"): calls(SourceKind.UNSEEDED, "")}])
    assert found == (Source(file="a.py", line=1, kind=SourceKind.UNSEEDED, call="random.seed"),)


def test_a_draw_from_a_global_generator_names_the_unseeded_generator() -> None:
    found = sources([{("a.py", 1, "numpy.random.normal"): calls(SourceKind.UNSEEDED, "numpy.random")}] * 2)
    normal = Source(
        file="a.py",
        line=1,
        kind=SourceKind.UNSEEDED,
        call="numpy.random.normal",
        generators=("numpy.random",),
    )
    assert found == (normal,)


def test_a_line_that_one_run_did_not_reach_is_no_source() -> None:
    zero = {AT: calls(SourceKind.SEED, "0")}
    assert sources([zero, {}, zero]) == ()


def test_completion_orders_are_compared_after_the_same_number_of_results() -> None:
    def run(*values: str) -> Seen:
        return {AT: calls(SourceKind.COMPLETION_ORDER, *values)}

    three, four = run(":1/a", ":2/b", ":3/c"), run(":1/a", ":2/b", ":4/d")
    assert sources([three, four]) == ()
    assert sources([run(":1/a", "Thread-1:1/c"), run(":1/a", "Thread-2:1/d")]) == ()
    assert sources([three, four, run(":1/a", ":2/b", ":4/e")]) == (source(SourceKind.COMPLETION_ORDER),)


def test_batches_in_completion_order_are_named_even_if_only_one_run_reached_the_line() -> None:
    call, kind = "DataLoader(in_order=False)", SourceKind.COMPLETION_ORDER_OPTION
    assert sources([{}, {("a.py", 1, call): calls(kind, "")}]) == (Source(file="a.py", line=1, kind=kind, call=call),)


def test_what_was_observed_to_differ_comes_first() -> None:
    entropy, unseeded = ("a.py", 1, "os.urandom"), ("a.py", 2, "random.Random")
    runs: list[Seen] = [
        {
            entropy: calls(SourceKind.ENTROPY, ""),
            unseeded: calls(SourceKind.UNSEEDED, ""),
            AT: calls(SourceKind.SEED, value),
            ("a.py", 3, "KMeans.fit(random_state)"): calls(SourceKind.SEED, value),  # which may have been drawn
        }
        for value in "12"
    ]
    kinds = (SourceKind.SEED, SourceKind.UNSEEDED, SourceKind.ENTROPY, SourceKind.SEED)
    assert tuple(found.kind for found in sources(runs)) == kinds


def test_files_are_relative_to_the_working_directory() -> None:
    hello = Hello(1, 1, 1, (), "3", None, ())
    lines = [SourceLine("seed", "f", "/w/a.py", 1, "0"), SourceLine("seed", "f", "/wide/b.py", 2, "0")]
    lines.append(SourceLine("setting", "f", "/w/c.py", 3, "True"))
    seed = calls(SourceKind.SEED, "0")
    found = seen_in([Process(hello, sources=lines)], Path("/w"))
    assert found == {("a.py", 1, "f"): seed, ("/wide/b.py", 2, "f"): seed}
