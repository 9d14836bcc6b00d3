"""The search for variations that change a training, on simulated trainings: each cause shows at its own rate."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.bisect.search import Effect, Sensitivity, SensitivitySearch
from detaudit.judge.policy import NONE, Flags, TrialOutcome, TrialResult

MANY = [f"v{n}" for n in range(10)]
Causes = Mapping[Flags, float]


class Simulated:
    """A training that sets of variations change, each at its rate; the empty set stands for what varies by itself."""

    def __init__(self, causes: Causes, seed: int = 0) -> None:
        self.causes, self._random = causes, random.Random(seed)
        self.matching: dict[Flags, int] = {}
        self.differing: dict[Flags, TrialResult] = {}
        self.launched = 0

    def __call__(self, varied: Flags, runs: int) -> TrialResult:
        if varied in self.differing:
            return self.differing[varied]
        done = self.matching.get(varied, 0)
        if not done:  # the control's first run is the first of every trial
            self.launched += not varied
            done = 1
        while done < runs:
            done += 1
            self.launched += 1
            shown = [c for c, rate in self.causes.items() if c <= varied and self._random.random() < rate]
            if shown:
                self.matching.pop(varied, None)
                place = min(list(self.causes).index(cause) for cause in shown)
                self.differing[varied] = TrialResult(TrialOutcome.DIFFERS, done, (place,))
                return self.differing[varied]
            self.matching[varied] = done
        return TrialResult(TrialOutcome.MATCHES, done)


def search(training: Simulated, order: Sequence[str] = MANY, **options: float) -> Sensitivity:
    return SensitivitySearch(training, MANY, lambda found: (order, 1), **options).run()  # type: ignore[arg-type]


def single(*variations: str, rate: float = 1.0) -> Causes:
    return {frozenset({one}): rate for one in variations}


@given(st.lists(st.sampled_from(MANY), max_size=4, unique=True), st.permutations(MANY))
def test_it_finds_exactly_the_effects_if_every_run_differs(causes: list[str], order: list[str]) -> None:
    training = Simulated(single(*causes))
    found = search(training, order)
    assert found.effects is not None
    assert {effect.variation for effect in found.effects} == set(causes)
    assert all(effect.together_with == () for effect in found.effects)
    assert all(effect.result == training.differing[effect.varied] for effect in found.effects)
    assert training.matching[frozenset(MANY) - set(causes)] == found.matching >= 5


@given(st.permutations(MANY), st.integers(2, 4))
def test_variations_with_an_effect_only_together_are_reported_without_any_other(order: list[str], size: int) -> None:
    training = Simulated({frozenset(order[:size]): 1.0})
    found = search(training)
    assert found.effects is not None
    (effect,) = found.effects
    assert effect.varied == frozenset(order[:size])


def test_runs_that_differed_with_more_pinned_are_no_match_with_less() -> None:
    """By chance, 17 runs match here with only v1 pinned, though runs with v2 and v3 pinned as well had differed."""
    training = Simulated({frozenset({"v0"}): 0.25, frozenset({"v1"}): 0.5}, 8388607)
    found = search(training, ["v3", "v2", "v0", "v1", "v4", "v5", "v6", "v7", "v8", "v9"])
    assert {effect.variation for effect in found.effects or ()} == {"v0", "v1"}


@given(
    rates=st.lists(st.sampled_from([0.25, 0.5, 1.0]), max_size=3),
    order=st.permutations(MANY),
    seed=st.integers(0, 2**32),
)
def test_it_never_returns_what_its_own_runs_contradict(rates: list[float], order: list[str], seed: int) -> None:
    training = Simulated({frozenset({MANY[n]}): rate for n, rate in enumerate(rates)}, seed)
    found = search(training, order)
    assert found.effects is not None
    affecting = {effect.variation for effect in found.effects}
    assert training.matching[frozenset(MANY) - affecting] == found.matching
    assert all(effect.varied in training.differing for effect in found.effects)


@pytest.mark.parametrize("rates", [(0.25,), (1.0, 0.25), (0.25, 0.25), (1.0, 0.5, 0.25), ()])
def test_the_answer_is_wrong_no_more_often_than_accepted(rates: tuple[float, ...]) -> None:
    tries, wrong = 600, 0
    for seed in range(tries):
        names = random.Random(seed).sample(MANY, len(rates))
        order = random.Random(seed + 1).sample(MANY, len(MANY))
        training = Simulated({frozenset({n}): rate for n, rate in zip(names, rates, strict=True)}, seed)
        found = search(training, order)
        wrong += found.effects is None or {effect.variation for effect in found.effects} != set(names)
    # Twice the standard deviation of 600 draws above 5 %.
    assert wrong / tries < 0.05 + 2 * (0.05 * 0.95 / tries) ** 0.5


@pytest.mark.parametrize("rate", [1.0, 0.5, 0.25, 0.1])
def test_a_training_that_differs_by_itself_is_sensitive_to_nothing(rate: float) -> None:
    tries, wrong = 600, 0
    for seed in range(tries):
        training = Simulated({NONE: rate}, seed)
        found = search(training, random.Random(seed).sample(MANY, len(MANY)))
        wrong += bool(found.effects)
    assert wrong / tries < 0.05 + 2 * (0.05 * 0.95 / tries) ** 0.5


def test_the_control_comes_first_and_ends_the_search_if_it_differs() -> None:
    training = Simulated({NONE: 1.0, **single("v0")})
    assert search(training).effects is None
    assert set(training.differing) == {NONE}
    assert training.launched == 2


def test_a_control_that_fails_has_no_answer() -> None:
    found = SensitivitySearch(
        lambda varied, runs: TrialResult(TrialOutcome.FAILS, 1), MANY, lambda found: (MANY, 1)
    ).run()
    assert found.effects is None
    assert found.control.outcome is TrialOutcome.FAILS


def test_it_is_cheap_if_no_variation_or_only_one_has_an_effect() -> None:
    nothing, one = Simulated({}), Simulated(single("v3"))
    assert search(nothing).effects == ()
    matching = search(one, ["v3", *MANY]).matching
    # The control, and the runs in which all varies; for one, a surer control, what differs, its proof, itself alone.
    assert nothing.launched <= 5 + 15
    assert one.launched <= 12 + 1 + matching + 1


class Logged:
    """Keeps what was varied with how many runs; ``shows`` says with how many a difference shows up, or 0 if none."""

    def __init__(self, shows: Callable[[Flags], int]) -> None:
        self._shows = shows
        self.asked: list[tuple[str, int]] = []

    def __call__(self, varied: Flags, runs: int) -> TrialResult:
        self.asked.append(("".join(sorted(varied)), runs))
        shown = self._shows(varied)
        return differs(shown) if 0 < shown <= runs else matches(runs)

    def search(self, **options: Any) -> Sensitivity:
        return SensitivitySearch(self, "abcd", lambda found: ("abcd", 1), **options).run()


def differs(runs: int = 2) -> TrialResult:
    return TrialResult(TrialOutcome.DIFFERS, runs, (0,))


def matches(runs: int) -> TrialResult:
    return TrialResult(TrialOutcome.MATCHES, runs)


@pytest.mark.parametrize(
    ("options", "control", "varied"), [({}, 5, 16), ({"confirm": 30}, 30, 30), ({"error": 0.5, "confirm": 2}, 2, 8)]
)
def test_as_many_runs_as_no_effect_needs(options: dict[str, Any], control: int, varied: int) -> None:
    trials = Logged(lambda varied: 0)
    assert trials.search(**options) == Sensitivity(matches(control), (), varied)
    assert trials.asked == [("", control), ("abcd", varied)]


@pytest.mark.parametrize(
    ("shown", "options", "first", "probe", "proof", "control"),
    [
        (2, {}, (5, 16), 2, 16, 12),
        (2, {"confirm": 30}, (30, 30), 2, 30, 30),
        (2, {"error": 0.5, "confirm": 2}, (2, 8), 2, 8, 4),
        (11, {}, (5, 16), 17, 40, 30),  # 1 run in 10 differs
    ],
)
def test_as_many_runs_as_an_effect_needs(
    shown: int, options: dict[str, Any], first: tuple[int, int], probe: int, proof: int, control: int
) -> None:
    trials = Logged(lambda varied: shown * ("b" in varied))
    assert trials.search(**options) == Sensitivity(matches(control), (Effect("b", differs(shown)),), proof)
    pinned = [("bcd", probe), ("cd", probe), ("acd", probe), ("acd", proof)]
    assert trials.asked == [("", first[0]), ("abcd", first[1]), *pinned, ("", control), ("b", probe)]


def test_what_varies_together_is_found_and_what_was_seen_is_not_run_again() -> None:
    trials = Logged(lambda varied: 2 * ({"b", "d"} <= varied))
    assert trials.search() == Sensitivity(matches(12), (Effect("b", differs(), ("d",)),), 16)
    assert trials.asked[6:] == [("", 12), ("b", 2), ("ab", 2), ("abc", 2), ("abd", 2), ("bd", 2)]
    trials = Logged(lambda varied: 2 * ("b" in varied or {"a", "c"} <= varied))
    effects = (Effect("a", differs(), ("c",)), Effect("b", differs()))
    assert trials.search() == Sensitivity(matches(12), effects, 17)
    assert trials.asked[-4:] == [("", 12), ("a", 2), ("ac", 2), ("b", 2)]


def test_an_effect_that_shows_with_all_others_alone_has_the_trial_that_showed_it() -> None:
    trials = Logged(lambda varied: 2 * ({"a", "b", "c", "d"} <= varied))
    assert trials.search() == Sensitivity(matches(12), (Effect("a", differs(), ("b", "c", "d")),), 16)
    assert ("abcd", 2) not in trials.asked


@given(st.sets(st.sampled_from(MANY[:5]), min_size=1))
def test_an_effect_has_the_trial_of_what_is_named_with_it(together: set[str]) -> None:
    def ask(varied: Flags, runs: int) -> TrialResult:
        name = " ".join(sorted(varied))
        return TrialResult(TrialOutcome.DIFFERS, 2, name=name) if together <= varied else matches(runs)

    found = SensitivitySearch(ask, MANY, lambda found: (MANY, 1)).run()
    assert found.effects is not None
    assert [effect.result.name for effect in found.effects] == [" ".join(sorted(together))]


def test_a_control_that_differs_once_it_runs_more_often_blames_nothing() -> None:
    trials = Logged(lambda varied: 2 * ("b" in varied) or 12 * (not varied))
    assert trials.search() == Sensitivity(differs(12), None)
    assert trials.asked[-1] == ("", 12)


def test_nothing_is_blamed_if_what_varies_fails() -> None:
    search = SensitivitySearch(
        lambda varied, runs: TrialResult(TrialOutcome.FAILS, 1) if varied else matches(runs),
        "abcd",
        lambda found: ("abcd", 1),
    )
    assert search.run() == Sensitivity(matches(5), None)


def test_a_difference_in_the_first_run_counts_as_one_in_each() -> None:
    trials = Logged(lambda varied: "b" in varied)
    assert trials.search() == Sensitivity(matches(12), (Effect("b", differs(1)),), 16)
