"""The statistics: what matching runs prove, and what they do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.auditor.judge.verdict import confidence, of_groups, of_runs
from detaudit.model import Verdict


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


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_a_verdict_rests_on_what_finished(finished: int, planned: int, distinct: int) -> None:
    found = of_runs(finished, planned, distinct)
    if distinct > 1:
        assert found is Verdict.NONDETERMINISTIC
    elif finished < planned or finished < 2:
        assert found is Verdict.INCONCLUSIVE


@given(st.lists(st.sampled_from(Verdict)))
def test_an_audit_is_as_good_as_its_worst_group(verdicts: list[Verdict]) -> None:
    found = of_groups(verdicts)
    assert (found is Verdict.DETERMINISTIC) == (bool(verdicts) and set(verdicts) == {Verdict.DETERMINISTIC})
    assert (found is Verdict.NONDETERMINISTIC) == (Verdict.NONDETERMINISTIC in verdicts)
