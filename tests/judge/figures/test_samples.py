"""Samples of the losses of runs."""

from hypothesis import given
from hypothesis import strategies as st

from detaudit.judge.figures import MOST_BINS, MOST_RANKS, NEAR, samples
from detaudit.model import Number, RunRecord, Training, as_number
from detaudit.model.figures import LossSamples


def recorded(*losses: dict[int, Number]) -> RunRecord:
    return RunRecord(trainings=tuple(Training(framework="torch", losses=one) for one in losses))


def test_a_short_training_has_all_its_losses_and_their_distances_from_the_first_run() -> None:
    found = samples({2: recorded({1: 0.5, 2: 0.25}), 1: recorded({1: 0.5, 2: 0.375, 3: "nan"})})
    assert found == (
        LossSamples(run=2, rank=0, steps=(1, 2), losses=(0.5, 0.25)),
        LossSamples(run=1, rank=0, steps=(1, 2, 3), losses=(0.5, 0.375, "nan"), distances=(0.0, 0.125, None)),
    )


def test_many_losses_are_a_few_hundred_with_all_around_the_first_difference_and_the_last() -> None:
    last, first = 100_000, 30_007
    a: dict[int, Number] = {step: 1 / step for step in range(1, last + 1)}
    b = {step: loss if step < first else 2 / step for step, loss in a.items()}
    one, other = samples({1: recorded(a), 2: recorded(b)})
    assert MOST_BINS / 2 < len(one.steps) <= MOST_BINS + 2 * NEAR + 2
    assert {*range(first - NEAR, first + NEAR + 1), 1, last} <= set(other.steps)
    assert all(loss == b[step] for step, loss in zip(other.steps, other.losses, strict=True))
    assert next(step for step, apart in zip(other.steps, other.distances, strict=True) if apart) == first


@given(st.lists(st.dictionaries(st.integers(0, 2000), st.floats(allow_nan=False), max_size=50), min_size=1, max_size=4))
def test_each_loss_is_one_that_its_run_recorded(sides: list[dict[int, float]]) -> None:
    records = {run: recorded(dict(side)) for run, side in enumerate(sides, 1)}
    for one in samples(records):
        side = sides[one.run - 1]
        assert [as_number(side[step]) for step in one.steps] == list(one.losses)
        assert max(side) in one.steps
        assert len(one.distances) in (0, len(one.steps))


def test_each_rank_has_its_own_samples_and_only_the_first_ones_have_any() -> None:
    other: dict[int, Number] = {1: 0.25}
    found = samples({1: recorded({1: 0.5}, {}, *[other] * MOST_RANKS)})
    assert [one.rank for one in found] == [0, *range(2, MOST_RANKS)]
    assert samples({1: recorded()}) == ()
