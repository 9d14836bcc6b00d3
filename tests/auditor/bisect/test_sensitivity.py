"""The search for variations that change a training, on simulated trainings: each cause shows at its own rate."""

import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.auditor.bisect.sensitivity import Sensitivity, SensitivitySearch
from detaudit.auditor.bisect.trial_results import NONE, Flags, TrialOutcome, TrialResult

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
    assert all(effect.found == training.differing[effect.varied] for effect in found.effects)
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
