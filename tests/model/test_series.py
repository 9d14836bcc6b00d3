"""Arrays of digests say what a look at each digest says."""

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.model import series
from detaudit.model.series import HeldSeries, first_step, last_equal, most_different, shared_steps

TEXTS = ("0" * 32, "f" * 32, "0" * 32 + " ", "0" * 32 + " name", "a short one", "0" * 64 + " file")
STEPS = st.dictionaries(st.integers(-2, 14), st.lists(st.sampled_from(TEXTS), max_size=2).map(tuple), max_size=8)


@pytest.fixture(autouse=True)
def _small_blocks() -> object:
    with mock.patch.object(series, "BLOCK", 4):
        yield


@given(STEPS, STEPS, st.none() | st.integers(0, 14), st.booleans())
def test_the_first_step_that_differs(a: series.Steps, b: series.Steps, through: int | None, shared: bool) -> None:
    steps = a.keys() & b.keys() if shared else a.keys() | b.keys()
    differing = min((step for step in steps if a.get(step) != b.get(step)), default=None)
    expected = differing if differing is None or through is None or differing <= through else None
    assert first_step(HeldSeries(a), HeldSeries(b), through=through, shared=shared) == expected


@given(STEPS, STEPS, st.integers(0, 14))
def test_the_last_step_that_is_equal(a: series.Steps, b: series.Steps, last: int) -> None:
    equal = (step for step in a if step <= last and a[step] == b.get(step))
    assert last_equal(HeldSeries(a), HeldSeries(b), last) == max(equal, default=None)


@given(STEPS, STEPS)
def test_series_are_equal_if_all_their_steps_are(a: series.Steps, b: series.Steps) -> None:
    assert (HeldSeries(a) == HeldSeries(b)) == (a == b) == (series.fingerprint(a) == series.fingerprint(b))


@given(STEPS, st.integers(-2, 15))
def test_a_series_through_a_step(steps: series.Steps, last: int) -> None:
    cut = HeldSeries(steps).through(last)
    expected = {step: texts for step, texts in steps.items() if step <= last}
    assert (dict(cut), list(cut), len(cut)) == (expected, sorted(expected), len(expected))
    assert list(reversed(cut)) == sorted(expected, reverse=True)
    assert cut == HeldSeries(expected)
    assert all((step in cut) == (step in expected) for step in range(-3, 16))


@given(st.lists(STEPS, min_size=1, max_size=4))
def test_the_most_digests_at_a_step(sides: list[series.Steps]) -> None:
    for block in {series.block_of(step) for side in sides for step in side}:
        own = [{step: texts for step, texts in side.items() if series.block_of(step) == block} for side in sides]
        steps = {step for side in own for step in side}
        most = max(len({side[step] for side in own if step in side}) for step in steps)
        whole = all(side.keys() == steps for side in own)
        assert most_different([HeldSeries(side).rows(block) for side in own]) == (most, whole)


@given(STEPS, STEPS)
def test_the_steps_of_both(a: series.Steps, b: series.Steps) -> None:
    for block in range(4):
        rows = [HeldSeries(steps).rows(block) for steps in (a, b)]
        both = sorted(step for step in a.keys() & b.keys() if series.block_of(step) == block)
        assert shared_steps(*rows).tolist() == both
