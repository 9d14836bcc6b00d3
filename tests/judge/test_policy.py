"""How far the next run goes: rules, and what they cost and notice when, on simulated trainings."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.config.options import Until
from detaudit.judge.policy import FIRST_S, FURTHER, SHARE, NextRun, next_run
from detaudit.model import Run, Status

WHOLE = Run(id=1, status=Status.OK, exit_code=0, wall_s=1.0, steps=900, result=1)
FAILED = msgspec.structs.replace(WHOLE, status=Status.FAILED, result=None)


def ended(through: int) -> Run:
    return msgspec.structs.replace(WHOLE, status=Status.ENDED, through=through)


def differs(run: Run) -> Run:
    return msgspec.structs.replace(run, result=2)


def after(*runs: Run, wanted: int = 2, steps: int | None = None) -> NextRun | None:
    return next_run(runs, wanted, climbs=True, steps=steps)


def test_a_short_run_comes_first_then_one_that_goes_further_then_whole_ones() -> None:
    assert after() == NextRun(2, Until(seconds=FIRST_S, in_training=True), least=True)
    assert after(ended(100)) == NextRun(3, Until(step=100 * FURTHER), least=True)
    assert after(ended(100), ended(6400)) == NextRun(4)
    assert after(ended(100), ended(6400), WHOLE) == NextRun(4)
    assert after(ended(100), ended(6400), WHOLE, WHOLE) is None


def test_no_run_goes_beyond_a_share_of_a_known_length_before_the_whole_ones() -> None:
    known = 100 * FURTHER * SHARE
    assert after(ended(100), steps=known - SHARE) == NextRun(3, Until(step=100 * FURTHER - 1), least=True)
    assert after(ended(100), ended(100 * FURTHER - 1), steps=known - SHARE) == NextRun(4)
    assert after(ended(100), ended(100 * FURTHER), steps=3 * known) == NextRun(4, Until(step=300 * FURTHER), least=True)
    assert after(ended(100), steps=2 * SHARE * 100) == NextRun(3, Until(step=200), least=True)
    assert after(ended(100), steps=2 * SHARE * 100 - SHARE) == NextRun(3)


def test_a_training_longer_than_expected_goes_to_its_end() -> None:
    assert after(ended(100), ended(5000), steps=SHARE * 5000) == NextRun(4)
    assert after(ended(100), ended(5000), steps=10) == NextRun(4)


def test_once_two_differ_the_others_go_as_far_as_they_did() -> None:
    runs = [ended(100), ended(400), differs(ended(400))]
    for _ in range(2):
        assert after(*runs, wanted=4) == NextRun(5, Until(step=400))
        runs.append(differs(ended(400)))
    assert after(*runs, wanted=4) is None


def test_a_whole_run_that_differs_is_compared_as_far_as_the_one_before_it() -> None:
    assert after(ended(2), differs(WHOLE), wanted=3) == NextRun(3, Until(step=2))


def test_whole_runs_that_differ_are_as_many_as_wanted() -> None:
    assert after(WHOLE, differs(WHOLE), wanted=3) == NextRun(3)
    assert after(WHOLE, differs(WHOLE), WHOLE, wanted=3) is None
    assert after(FAILED, differs(WHOLE), wanted=3) == NextRun(3)


def test_a_run_that_fails_is_one_of_those_wanted() -> None:
    runs = [ended(10)]
    for _ in range(3):
        assert after(*runs, wanted=3) is not None
        runs.append(FAILED)
    assert after(*runs, wanted=3) is None


def test_a_run_that_was_ended_for_no_difference_is_not_followed_again() -> None:
    again = after(ended(100), ended(100))
    assert again == NextRun(4, Until(step=100 * FURTHER), least=True, follows=False)
    assert after(ended(100), ended(100), ended(6400)) == NextRun(5)


def test_a_single_run_goes_to_its_end_and_so_do_all_that_do_not_climb() -> None:
    assert after(wanted=1) == NextRun(1)
    assert after(WHOLE, wanted=1) is None
    assert next_run([ended(9)], 2, climbs=False) == NextRun(2)
    assert next_run([ended(9), ended(9)], 2, climbs=False) is None


# The table by which the policy was chosen. A training does 10 steps a second, and starts in 4 s.


RUNS = 5
START_S = 4.0
STEP_S = 0.1


def simulated(seconds: float, differs_s: float | None = None, *, known: bool = False) -> float:
    """Return how long all runs take, or if runs differ from a moment on, after how long that is known.

    ``known`` says that an earlier audit showed the length.
    """
    steps = round(seconds / STEP_S)
    runs: list[Run] = []
    spent, furthest = 0.0, 0
    while planned := after(*runs, wanted=RUNS, steps=steps if known else None):
        until = planned.until
        through = steps if until is None else min(steps, until.step or round((until.seconds or 0) / STEP_S))
        if runs and differs_s is not None and differs_s <= min(through, furthest) * STEP_S:
            return spent + START_S + differs_s
        spent, furthest = spent + START_S + through * STEP_S, max(furthest, through)
        runs.append(WHOLE if through == steps else ended(through))
    return spent


def over_a_loop(seconds: float, *, known: bool = False) -> float:
    """Return what five runs that match cost, over five whole ones."""
    return simulated(seconds, known=known) / (RUNS * (seconds + START_S))


TABLE = """
training  known  matching  step 1  100 s  middle   last
    32 s     no      1.05    0.36      -    1.81   2.25
    85 s     no      1.02    0.15      -    1.62   2.10
   400 s     no      1.16    0.03   1.08    1.33   2.82
  3600 s     no      1.02    0.00   0.12    1.59   2.09
 86400 s     no      1.00    0.00   0.01    1.50   2.00
    32 s    yes      1.05    0.36      -    1.81   2.25
    85 s    yes      1.02    0.15      -    1.62   2.10
   400 s    yes      1.02    0.03   1.35    1.60   2.09
  3600 s    yes      1.01    0.00   0.09    1.57   2.07
 86400 s    yes      1.01    0.00   0.01    1.57   2.07
"""
"""What runs that match cost, over five whole ones; when differences are known, from a moment on, in trainings."""


@pytest.mark.parametrize("row", TABLE.strip().splitlines()[1:])
def test_what_runs_that_match_cost_and_when_a_difference_is_known(row: str) -> None:
    length, _, known, *cells = row.split()
    seconds, is_known = float(length), known == "yes"
    noticed = [simulated(seconds, moment, known=is_known) for moment in (0.0, 100.0, seconds / 2, seconds)]
    costs = [over_a_loop(seconds, known=is_known), *(moment / (seconds + START_S) for moment in noticed)]
    assert [cell for cell in cells if cell != "-"] == [
        f"{cost:.2f}" for number, cost in enumerate(costs) if number != 2 or seconds > 100
    ]


def test_what_differs_at_once_is_known_after_two_starts_and_five_seconds() -> None:
    for seconds in (32, 400, 86_400):
        assert simulated(seconds, 0.0) == 2 * START_S + FIRST_S


@given(seconds=st.floats(32, 10**6))
def test_runs_that_match_cost_little_more_than_a_loop(seconds: float) -> None:
    assert over_a_loop(seconds, known=True) <= 1.06
    # No policy that ends a second run before the length is known can do better for all lengths.
    further = FURTHER * FIRST_S
    assert over_a_loop(seconds) <= (1.06 if not further < seconds < 3.5 * further else 1.21)


@given(
    steps=st.integers(1, 10**7),
    first=st.integers(2, 10**4),
    differ=st.integers(1, 2 * 10**7),
    wanted=st.integers(2, 9),
    expected=st.none() | st.integers(1, 10**7),
)
def test_as_many_runs_as_wanted_are_of_one_length(
    steps: int, first: int, differ: int, wanted: int, expected: int | None
) -> None:
    runs: list[Run] = []
    went: list[int] = []
    while planned := after(*runs, wanted=wanted, steps=expected):
        until = planned.until
        through = steps if until is None else min(steps, until.step or first)
        known = bool(went) and differ <= min(through, max(went))
        through = min(through, max(went)) if known else through
        went.append(through)
        run = WHOLE if through == steps else ended(through)
        runs.append(differs(run) if known else run)
    assert went.count(max(went)) == wanted
    assert len(went) <= wanted + 4
