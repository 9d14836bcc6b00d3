"""Growing a set of flags: what is tried, in which order, and what is kept."""

from collections.abc import Callable, Iterable, Sequence

import pytest

from detaudit.bisect import search
from detaudit.bisect.search import Failures, Growth, Rules
from detaudit.judge.policy import NONE, Flags, TrialOutcome, TrialResult

MATCHES, FAILS = TrialResult(TrialOutcome.MATCHES, 2), TrialResult(TrialOutcome.FAILS, 1)
MANY = tuple("abcdefgh")


def differs(*place: int) -> TrialResult:
    return TrialResult(TrialOutcome.DIFFERS, 2, place)


class Trials:
    """Grows sets, and keeps which were tried in order."""

    def __init__(
        self,
        answer: Callable[[Flags], TrialResult],
        order: Sequence[str] = MANY,
        together: int = 1,
        rules: Rules | None = None,
    ) -> None:
        self._answer, self._order, self._together = answer, order, together
        self.asked: list[str] = []
        self.probes = 0
        self.found: list[TrialResult] = []
        rules = rules or Rules()
        self.failures = Failures(rules)
        self.growth = Growth(self.probe, self.rank, rules, self.failures)

    def probe(self, flags: Iterable[str]) -> TrialResult:
        tried = list(flags)
        self.probes += 1
        assert self.probes < 1000, "it never ends"
        if "".join(tried) not in self.asked:  # no set is run twice
            self.asked.append("".join(tried))
        return self._answer(frozenset(tried))

    def rank(self, found: TrialResult) -> tuple[Sequence[str], int]:
        self.found.append(found)
        return self._order, self._together

    def grow(self) -> str | None:
        grown = self.growth.grow(differs(0))
        return None if grown is None else "".join(grown)


def fixed_by(*flags: str, place: int = 0) -> Callable[[Flags], TrialResult]:
    return lambda tried: MATCHES if set(flags) <= tried else differs(place)


def test_each_prefix_is_twice_as_long() -> None:
    trials = Trials(fixed_by("h"))
    assert trials.grow() == "abcdefgh"
    assert trials.asked == ["a", "ab", "abcd", "abcdefgh"]
    trials = Trials(fixed_by("f"))
    assert (trials.grow(), trials.asked) == ("abcdefgh", ["a", "ab", "abcd", "abcdefgh"])


def test_flags_that_belong_together_are_tried_at_once() -> None:
    trials = Trials(fixed_by("c"), together=3)
    assert (trials.grow(), trials.asked) == ("abc", ["abc"])
    trials = Trials(fixed_by("f"), together=3)
    assert (trials.grow(), trials.asked) == ("abcdef", ["abc", "abcdef"])


def test_if_all_flags_fix_nothing_there_is_no_answer() -> None:
    trials = Trials(fixed_by("no flag"))
    assert trials.grow() is None
    assert trials.asked == ["a", "ab", "abcd", "abcdefgh"]
    assert trials.probes == 4
    trials = Trials(fixed_by("no flag"), order="abc")
    assert trials.grow() is None
    assert trials.asked == ["a", "ab", "abc"]


def test_without_flags_there_is_no_answer() -> None:
    trials = Trials(fixed_by("a"), order="")
    assert trials.grow() is None


def test_what_moves_the_first_difference_to_a_later_place_is_kept() -> None:
    def answer(tried: Flags) -> TrialResult:
        return MATCHES if {"b", "d"} <= tried else differs(int("b" in tried))

    trials = Trials(answer)
    assert (trials.grow(), trials.asked) == ("abcd", ["a", "ab", "abc", "abcd"])
    assert [found.position for found in trials.found] == [(0,), (0,), (1,), (1,)]


def test_each_trial_that_differs_is_a_new_clue() -> None:
    class Clues(Trials):
        def rank(self, found: TrialResult) -> tuple[Sequence[str], int]:
            super().rank(found)
            return ("xyz" if found.name else "abz"), 1

    clue = TrialResult(TrialOutcome.DIFFERS, 2, (0,), "trial 1")
    trials = Clues(lambda tried: MATCHES if "x" in tried else clue)
    assert (trials.grow(), trials.asked) == ("ax", ["a", "ax"])
    assert trials.found == [differs(0), clue]


def test_a_flag_that_fails_is_left_out_and_what_was_tried_with_it_is_kept() -> None:
    trials = Trials(lambda tried: FAILS if "b" in tried else fixed_by("d")(tried))
    assert trials.grow() == "acde"
    assert list(trials.failures.alone) == ["b"]
    assert trials.asked == ["a", "ab", "b", "ac", "acde"]


def test_what_was_tried_before_a_failure_is_kept_although_the_order_is_another() -> None:
    class Clues(Trials):
        def rank(self, found: TrialResult) -> tuple[Sequence[str], int]:
            super().rank(found)
            return ("xyz" if found.name else "abz"), 1

    clue = TrialResult(TrialOutcome.DIFFERS, 2, (0,), "trial 1")
    trials = Clues(lambda tried: FAILS if "x" in tried else MATCHES if {"a", "y"} <= tried else clue)
    assert (trials.grow(), trials.asked) == ("ay", ["a", "ax", "x", "ay"])


def test_the_alternative_of_a_flag_that_fails_comes_first() -> None:
    rules = Rules(alternatives={"a": ["h"]})
    trials = Trials(lambda tried: FAILS if "a" in tried else fixed_by("h")(tried), rules=rules)
    assert trials.grow() == "h"
    assert trials.asked[-1] == "h"


def test_flags_that_fail_only_together_are_not_tried_together_again() -> None:
    trials = Trials(lambda tried: FAILS if {"a", "b"} <= tried else fixed_by("d")(tried))
    assert (trials.grow(), trials.asked) == ("acd", ["a", "ab", "b", "acd"])
    assert not trials.failures.alone


def test_flags_that_conflict_are_tried_in_front_in_turn() -> None:
    rules = Rules(conflicts={"a": ["b"]})
    trials = Trials(fixed_by("b"), order="abc", rules=rules)
    assert trials.grow() == "b"
    assert trials.asked == ["a", "ac", "b"]
    assert set(trials.found) == {differs(0)}


def test_a_front_is_not_tried_twice_in_another_order() -> None:
    rules = Rules(conflicts={"a": ["b", "c"], "b": ["c"]})
    trials = Trials(fixed_by("no flag"), order="abc", rules=rules)
    assert trials.grow() is None
    assert trials.asked == ["a", "b", "c"]


def test_fronts_grow_until_nothing_is_left_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = Rules(conflicts={"a": ["b", "c"], "b": ["c"]})
    trials = Trials(fixed_by("no flag"), order="abc", rules=rules)
    climb = trials.growth._climb
    fronts: list[str] = []

    def counted(base: TrialResult, front: Sequence[str]) -> tuple[bool, list[str]]:
        fronts.append("".join(front))
        return climb(base, front)

    monkeypatch.setattr(trials.growth, "_climb", counted)
    assert trials.grow() is None
    assert fronts == ["", "b", "c", "ab", "cb", "ac", "cab"]


def test_fronts_are_limited() -> None:
    order = [f"f{n}" for n in range(40)]
    rules = Rules(conflicts={one: [other for other in order if other != one] for one in order})
    trials = Trials(fixed_by("no flag"), order=order, rules=rules)
    assert trials.grow() is None
    assert len(trials.asked) == search.MOST_CLIMBS == 32
    assert Trials(fixed_by("f30"), order=order, rules=rules).grow() == "f30"
    assert Trials(fixed_by("f31"), order=order, rules=rules).grow() == "f31"
    assert Trials(fixed_by("f32"), order=order, rules=rules).grow() is None


def test_what_a_flag_requires_counts_for_conflicts() -> None:
    rules = Rules(requires={"a": ["x"]}, conflicts={"x": ["b"]})
    trials = Trials(fixed_by("c"), order="abc", rules=rules)
    assert (trials.grow(), trials.asked) == ("ac", ["a", "ac"])


def test_nothing_is_known_to_fail_at_first() -> None:
    assert not Failures(Rules()).holds(NONE)
