"""Each run goes several times as far as the last, until two differ or one goes to its end."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from detaudit.config.options import Until
from detaudit.judge.policy import FACTOR, FIRST_S, Ladder
from detaudit.model import Run, Status

WHOLE = Run(id=1, status=Status.OK, exit_code=0, wall_s=1.0, steps=900)
FAILED = msgspec.structs.replace(WHOLE, status=Status.FAILED)


def ended(through: int) -> Run:
    return msgspec.structs.replace(WHOLE, status=Status.ENDED, through=through)


def state(ladder: Ladder) -> tuple[Until | None, bool, int]:
    """Return where the next run is ended, whether they go further, and how many there are."""
    return ladder.until, ladder.climbs, ladder.total


def test_each_run_goes_several_times_as_far_until_one_is_whole() -> None:
    ladder = Ladder(2, climbs=True)
    assert ladder.until == Until(seconds=FIRST_S, in_training=True)
    ladder.take(ended(100), differs=False)
    assert state(ladder) == (Until(step=600), True, 3)
    ladder.take(ended(600), differs=False)
    assert state(ladder) == (Until(step=2400), True, 4)
    ladder.take(ended(2400), differs=False)
    assert state(ladder) == (Until(step=9600), True, 5)
    ladder.take(WHOLE, differs=False)
    assert state(ladder) == (None, False, 5)
    ladder.take(WHOLE, differs=False)
    assert not ladder.more


def test_once_two_differ_the_others_go_as_far_as_they_did() -> None:
    ladder = Ladder(4, climbs=True)
    ladder.take(ended(100), differs=False)
    ladder.take(ended(400), differs=False)
    ladder.take(ended(400), differs=True)
    assert state(ladder) == (Until(step=400), False, 5)
    ladder.take(ended(400), differs=True)
    assert ladder.more
    ladder.take(ended(400), differs=True)
    assert not ladder.more


def test_whole_runs_that_differ_are_as_many_as_wanted() -> None:
    ladder = Ladder(3, climbs=True)
    for number in range(3):
        assert ladder.more
        ladder.take(WHOLE, differs=number > 0)
    assert not ladder.more


def test_a_run_that_fails_is_one_of_those_wanted() -> None:
    ladder = Ladder(3, climbs=True)
    ladder.take(ended(10), differs=False)
    for _ in range(3):
        assert ladder.more
        ladder.take(FAILED, differs=False)
    assert not ladder.more


def test_a_run_that_was_ended_for_no_difference_is_not_followed_again() -> None:
    ladder = Ladder(2, climbs=True)
    follows = []
    for through in (100, 100, 400):
        ladder.take(ended(through), differs=False)
        follows.append(ladder.follows)
    assert follows == [True, False, True]


def test_a_single_run_goes_to_its_end() -> None:
    assert Ladder(1, climbs=True).until is None
    assert Ladder(5, climbs=False).until is None


@given(
    steps=st.integers(1, 10**7), first=st.integers(2, 10**4), differ=st.integers(1, 2 * 10**7), runs=st.integers(2, 9)
)
def test_what_it_costs(steps: int, first: int, differ: int, runs: int) -> None:
    ladder, differs = Ladder(runs, climbs=True), False
    went: list[int] = []
    while ladder.more:
        until = ladder.until
        through = steps if until is None else min(steps, until.step or first)
        if went and differ <= min(through, max(went)):
            through, differs = min(through, max(went)), True
        went.append(through)
        ladder.take(WHOLE if through == steps else ended(through), differs=differs)
    assert sum(one == max(went) for one in went) == runs  # of one length
    assert sum(went) <= max(went) * (runs + FACTOR / (FACTOR - 1))
