"""The statistics: what matching runs prove, and what they do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.judge.verdict import (
    ERROR_RATE,
    LEVEL,
    PROBE_ERROR,
    RAREST,
    confidence,
    differing_share,
    evidence,
    miss_probability,
    of_groups,
    of_runs,
)
from detaudit.model import Evidence, Verdict


@given(st.integers(2, 1000), st.floats(0.01, 0.999))
def test_a_rate_above_the_bound_would_have_shown(matching: int, level: float) -> None:
    bound = confidence(matching, level)
    assert bound is not None
    assert 0 <= bound.max_differing_rate <= 1
    match_by_chance = (1 - bound.max_differing_rate) ** (matching - 1)
    assert match_by_chance == pytest.approx(1 - level)


@given(st.integers(2, 999))
def test_more_runs_lower_the_bound(matching: int) -> None:
    fewer, more = confidence(matching), confidence(matching + 1)
    assert fewer is not None
    assert more is not None
    assert more.max_differing_rate < fewer.max_differing_rate


def test_five_runs() -> None:
    bound = confidence(5)
    assert bound is not None
    assert bound.max_differing_rate == pytest.approx(0.527, abs=5e-4)
    assert confidence(1) is None


def test_the_numbers_that_the_documents_promise() -> None:
    assert (LEVEL, ERROR_RATE, RAREST, PROBE_ERROR) == (0.95, 0.05, 0.25, 0.2)


def test_two_runs_are_the_fewest_that_prove_something() -> None:
    for bound, level in ((confidence(2, 0.9), 0.9), (confidence(2), LEVEL)):
        assert bound is not None
        assert bound.level == level
        assert bound.max_differing_rate == pytest.approx(level)


@pytest.mark.parametrize(
    ("matching", "rate", "expected"), [(0, 0.25, 1), (1, 0.25, 1), (2, 0.25, 0.75), (5, 0.5, 0.0625), (3, 1, 0)]
)
def test_what_matching_runs_may_miss(matching: int, rate: float, expected: float) -> None:
    assert miss_probability(matching, rate) == pytest.approx(expected)
    assert isinstance(miss_probability(matching, 1), float)


def test_the_evidence_of_five_runs() -> None:
    assert evidence(5) == Evidence(runs=5, confidence=confidence(5), assumed_rate=0.25, miss_probability=0.75**4)
    assert evidence(1).confidence is None


def test_the_evidence_of_runs_of_which_few_went_to_the_end() -> None:
    assert evidence(16, 63, 2) == Evidence(
        runs=16,
        confidence=confidence(16),
        assumed_rate=0.25,
        miss_probability=0.75**15,
        through=63,
        whole=2,
        whole_confidence=confidence(2),
    )
    assert evidence(16, 63, 1).whole_confidence is None


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_a_verdict_rests_on_what_finished(finished: int, planned: int, distinct: int) -> None:
    found = of_runs(finished, planned, distinct)
    if distinct > 1:
        assert found is Verdict.NONDETERMINISTIC
    elif finished != planned or finished < 2:
        assert found is Verdict.INCONCLUSIVE
    else:
        assert found is Verdict.DETERMINISTIC


def test_runs_that_all_finished_and_match_are_deterministic() -> None:
    assert of_runs(2, 2, 1) is Verdict.DETERMINISTIC
    assert of_runs(2, 3, 1) is Verdict.INCONCLUSIVE
    assert of_runs(1, 1, 1) is Verdict.INCONCLUSIVE
    assert of_runs(2, 3, 2) is Verdict.NONDETERMINISTIC


@given(st.lists(st.sampled_from(Verdict)))
def test_an_audit_is_as_good_as_its_worst_group(verdicts: list[Verdict]) -> None:
    found = of_groups(verdicts)
    assert (found is Verdict.DETERMINISTIC) == (bool(verdicts) and set(verdicts) == {Verdict.DETERMINISTIC})
    assert (found is Verdict.NONDETERMINISTIC) == (Verdict.NONDETERMINISTIC in verdicts)
    assert of_groups([Verdict.INCONCLUSIVE, Verdict.DETERMINISTIC]) is Verdict.INCONCLUSIVE
    assert of_groups([]) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("results", "least", "most"),
    [
        ([1] * 99 + [2], 0.000253, 0.054459),  # the tables of Clopper and Pearson, 1 of 100
        ([1] * 5 + [2] * 3 + [3] * 2, 0.187086, 0.812914),  # 5 of 10
    ],
)
def test_the_share_of_differing_runs_has_bounds(results: list[int], least: float, most: float) -> None:
    found = differing_share(results)
    assert found is not None
    assert (found.runs, found.differing) == (len(results), len(results) - results.count(1))
    assert found.least == pytest.approx(least, abs=1e-6)
    assert found.most == pytest.approx(most, abs=1e-6)


def test_a_share_is_known_of_ten_runs_and_more_that_differ() -> None:
    assert differing_share([1] * 8 + [2]) is None
    assert differing_share([1] * 20) is None
    assert differing_share([]) is None


def test_runs_that_all_differ_leave_one_that_is_the_most_frequent() -> None:
    found = differing_share(range(10))
    assert found is not None
    assert found.differing == 9
    assert found.least < 0.9 < found.most < 1


def test_a_share_of_thousands_of_runs_has_bounds_too() -> None:
    found = differing_share([1] * 4999 + [2])
    assert found is not None
    assert 0 < found.least < 1 / 5000 < found.most < 0.002
