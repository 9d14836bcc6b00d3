"""What the results of a repeated operation show."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.model import MOST_RESULTS, Condition, ModeEffect, ReplayVerdict
from detaudit.ops.replay import Repeated, judged

FILLS = ("aa", "55", "00")
_UNFILLED = (Condition.AS_RECORDED, Condition.LOADED)


def repeated(condition: Condition, results: str) -> Repeated:
    """Return the results of a condition: a letter for each; with filled memory, a part for each byte."""
    parts = [results] if condition in _UNFILLED else (results.split() if " " in results else [results] * len(FILLS))
    fills = ("",) if condition in _UNFILLED else FILLS
    counts = {fill: {one: part.count(one) for one in part} for fill, part in zip(fills, parts, strict=True)}
    return Repeated(counts, threads=4)


def found(**changed: str) -> dict[Condition, Repeated]:
    """Return results that all match, but for those of some conditions."""
    results = {condition: changed.get(condition.replace("-", "_"), "xxx") for condition in Condition}
    return {condition: repeated(condition, text) for condition, text in results.items()}


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, ReplayVerdict.DETERMINISTIC),
        ({"deterministic": "yyy"}, ReplayVerdict.DETERMINISTIC),
        ({"one_thread": "yyy"}, ReplayVerdict.DETERMINISTIC),
        ({"as_recorded": "xyx"}, ReplayVerdict.RACES),
        ({"loaded": "xxy"}, ReplayVerdict.RACES),
        ({"filled": "xxx xyx xxx"}, ReplayVerdict.RACES),
        ({"as_recorded": "xyz", "loaded": "xyx", "filled": "xxy yyx xzx"}, ReplayVerdict.RACES),
        ({"filled": "xxx yyy zzz"}, ReplayVerdict.MEMORY),
        ({"filled": "xxx xxx yyy"}, ReplayVerdict.MEMORY),
        ({"filled": "xxx xxx yyy", "as_recorded": "abc", "loaded": "ade"}, ReplayVerdict.MEMORY),
        ({"one_thread": "xxx xxx yyy"}, ReplayVerdict.MEMORY),
        ({"one_thread": "xxy xyz xyz", "filled": "xyz", "as_recorded": "xyz"}, ReplayVerdict.VARIES),
        ({"loaded": "yyy"}, ReplayVerdict.PER_PROCESS),
        ({"filled": "yyy"}, ReplayVerdict.PER_PROCESS),
    ],
)
def test_the_verdict(changed: Mapping[str, str], verdict: ReplayVerdict) -> None:
    assert judged(found(**changed)).verdict is verdict


@pytest.mark.parametrize(
    ("changed", "mode"),
    [
        ({}, None),
        ({"as_recorded": "xyz"}, ModeEffect.FIXES),
        ({"loaded": "yyy"}, None),
        ({"as_recorded": "xyz", "deterministic": "xyz"}, ModeEffect.NO_EFFECT),
        ({"filled": "xxx yyy xxx"}, ModeEffect.FIXES),
        ({"filled": "xxx yyy xxx", "deterministic": "xxx yyy xxx"}, ModeEffect.NO_EFFECT),
    ],
)
def test_the_effect_of_the_deterministic_mode(changed: Mapping[str, str], mode: ModeEffect | None) -> None:
    assert judged(found(**changed)).mode is mode


@pytest.mark.parametrize("changed", [{}, {"as_recorded": "xyz"}])
def test_a_mode_that_raises_an_error_says_so_whatever_the_verdict(changed: Mapping[str, str]) -> None:
    results = {**found(**changed), Condition.DETERMINISTIC: Repeated(error="RuntimeError: no implementation")}
    made = judged(results)
    assert made.mode is ModeEffect.RAISES
    assert made.series[-1].error == "RuntimeError: no implementation"


def test_what_raises_an_error_by_itself_is_inconclusive() -> None:
    made = judged({condition: Repeated(error="ValueError: x") for condition in Condition})
    assert (made.verdict, made.mode) == (ReplayVerdict.INCONCLUSIVE, None)


def test_a_condition_that_failed_does_not_count() -> None:
    results = {**found(as_recorded="xyx"), Condition.FILLED: Repeated(error="no mallopt")}
    assert judged(results).verdict is ReplayVerdict.RACES


def test_a_series_has_the_most_frequent_results() -> None:
    first = judged(found(as_recorded="aab" + "cdefghijkl")).series[0]
    assert (first.condition, first.repeats, first.distinct) == (Condition.AS_RECORDED, 13, 12)
    assert first.counts == (2, *[1] * (MOST_RESULTS - 1))
    assert first.differing == 11


@pytest.mark.parametrize(("results", "differing"), [("xxx", 0), ("xxy", 1), ("xyz", 3)])
def test_how_many_results_differ(results: str, differing: int) -> None:
    assert judged(found(as_recorded=results)).series[0].differing == differing


RESULTS = st.text("xyz", min_size=1, max_size=6)


@given(st.lists(RESULTS, min_size=len(Condition), max_size=len(Condition)))
def test_only_results_that_all_match_are_deterministic(texts: list[str]) -> None:
    results = {condition: repeated(condition, text) for condition, text in zip(Condition, texts, strict=True)}
    apart = (Condition.DETERMINISTIC, Condition.ONE_THREAD)
    usual = {one for condition in Condition if condition not in apart for one in results[condition].results}
    steady = not results[Condition.ONE_THREAD].varies
    made = judged(results)
    assert (made.verdict is ReplayVerdict.DETERMINISTIC) == (len(usual) == 1 and steady)
    assert all(sum(one.counts) <= one.repeats for one in made.series)


@given(st.permutations("xyz"), st.lists(RESULTS, min_size=2, max_size=2))
def test_a_result_that_follows_the_filling_is_never_a_race(fills: list[str], usual: list[str]) -> None:
    made = judged(found(filled=" ".join(one * 3 for one in fills), as_recorded=usual[0], loaded=usual[1]))
    assert made.verdict is ReplayVerdict.MEMORY
