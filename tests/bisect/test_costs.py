"""The cost of a flag is a median over pairs of runs that took turns, with its range; fewer than three say nothing."""

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.bisect.costs import LEAST_PAIRS, PAIRS, Timing, cost, interval
from detaudit.judge.policy import Flags

BARE: Flags = frozenset({"seed"})
WITH: Flags = BARE | {"kernel"}
OTHER: Flags = frozenset({"other"})

SECONDS = st.floats(0.1, 1000.0)
RATIOS = st.lists(st.floats(0.01, 100.0), min_size=1, max_size=60)


def of_run(flags: Flags, seconds: float, length: int = 9, machine: str = "") -> Timing:
    return Timing(flags, None, seconds, (length, None), machine)


def turns(pairs: int, factor: float, load: list[float] | None = None) -> list[Timing]:
    """Return runs that take turns; the machine has a load of its own for each pair."""
    loads = load or [1.0] * pairs
    found = []
    for number in range(pairs):
        pair = [of_run(BARE, loads[number]), of_run(WITH, factor * loads[number])]
        found += pair if number % 2 == 0 else pair[::-1]
    return found


@pytest.mark.parametrize("pairs", range(PAIRS + 1))
def test_fewer_than_three_pairs_say_nothing(pairs: int) -> None:
    found = cost(turns(pairs, 2.0), WITH, BARE)
    assert (found is None) == (pairs < LEAST_PAIRS)
    assert found is None or (found.factor, found.least, found.most, found.pairs) == (2.0, 2.0, 2.0, pairs)


def test_runs_of_one_kind_after_the_other_are_no_pairs() -> None:
    """One run without the flag and thirteen with it, on a machine that became faster, are not 0.7x."""
    assert cost([of_run(BARE, 10.0), *(of_run(WITH, 7.0) for _ in range(13))], WITH, BARE) is None
    assert cost([*(of_run(BARE, 10.0) for _ in range(20)), *(of_run(WITH, 7.0) for _ in range(20))], WITH, BARE) is None


def test_what_ran_between_them_and_other_lengths_and_machines_separate_runs() -> None:
    assert cost([of_run(one, 1.0) for _ in range(9) for one in (BARE, OTHER, WITH, OTHER)], WITH, BARE) is None
    lengths = [one for _ in range(9) for one in (of_run(BARE, 1.0, 9), of_run(WITH, 1.0, 8))]
    assert cost(lengths, WITH, BARE) is None
    machines = [one for _ in range(9) for one in (of_run(BARE, 1.0), of_run(WITH, 1.0, machine="b"))]
    assert cost(machines, WITH, BARE) is None


def test_runs_that_were_ended_early_are_timed_by_their_steps() -> None:
    ended = [one for _ in range(3) for one in (Timing(BARE, 0.5, None, (90, 90)), Timing(WITH, 0.6, None, (75, 75)))]
    found = cost(ended, WITH, BARE)
    assert found is not None
    assert found.factor == pytest.approx(1.2)
    assert cost([Timing(one) for _ in range(9) for one in (BARE, WITH)], WITH, BARE) is None


@given(st.floats(0.5, 5.0), st.lists(SECONDS, min_size=LEAST_PAIRS, max_size=20))
def test_the_load_of_the_machine_does_not_count(factor: float, load: list[float]) -> None:
    found = cost(turns(len(load), factor, load), WITH, BARE)
    assert found is not None
    assert found.pairs == len(load)
    assert (found.factor, found.least, found.most) == pytest.approx((factor, factor, factor))


@given(st.lists(st.sampled_from([BARE, WITH, OTHER]), max_size=40))
def test_no_run_is_in_two_pairs(kinds: list[Flags]) -> None:
    found = cost([of_run(kind, 1.0) for kind in kinds], WITH, BARE)
    assert found is None or LEAST_PAIRS <= found.pairs <= min(kinds.count(BARE), kinds.count(WITH))


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=LEAST_PAIRS, max_size=20))
def test_the_cost_the_other_way_round_is_the_inverse(times: list[tuple[float, float]]) -> None:
    timings = [one for bare, with_it in times for one in (of_run(BARE, bare), of_run(WITH, with_it))]
    found, inverse = cost(timings, WITH, BARE), cost(timings, BARE, WITH)
    assert found is not None
    assert inverse is not None
    assert (inverse.least, inverse.most) == pytest.approx((1 / found.most, 1 / found.least))


@given(RATIOS)
def test_the_range_is_of_ratios_that_were_measured_and_has_their_median(ratios: list[float]) -> None:
    least, most = interval(ratios)
    assert least in ratios
    assert most in ratios
    assert least <= statistics.median(ratios) <= most
    if len(ratios) < 9:
        assert (least, most) == (min(ratios), max(ratios))


@given(RATIOS, st.randoms())
def test_the_order_of_the_pairs_does_not_count(ratios: list[float], draw: random.Random) -> None:
    shuffled = draw.sample(ratios, len(ratios))
    assert interval(shuffled) == interval(ratios)


@given(RATIOS, st.floats(0.01, 100.0))
def test_one_outlier_moves_no_end_of_many(ratios: list[float], outlier: float) -> None:
    least, most = interval([*ratios, outlier])
    assert min(*ratios, outlier) <= least <= most <= max(*ratios, outlier)
    if len(ratios) >= 9:  # then one on each side is left out
        ordered = sorted(ratios)
        assert ordered[0] <= least
        assert most <= ordered[-1]


@pytest.mark.parametrize(("pairs", "least_share"), [(3, 0.75), (5, 0.93), (PAIRS, 0.95), (9, 0.95), (20, 0.95)])
def test_the_range_has_the_true_median_as_often_as_it_says(pairs: int, least_share: float) -> None:
    draw, trials = random.Random(0), 4000
    hits = 0
    for _ in range(trials):
        least, most = interval([draw.lognormvariate(0.0, 0.3) for _ in range(pairs)])
        hits += least <= 1.0 <= most
    assert hits / trials >= least_share - 0.015
