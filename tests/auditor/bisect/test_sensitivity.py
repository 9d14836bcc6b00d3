"""The search for variations that matter, on trainings that are simulated: each cause shows at its own rate."""

import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.auditor.bisect.minimal_set import NONE, Finding, Flags, Outcome
from detaudit.auditor.bisect.sensitivity import Blaming, Told

MANY = [f"v{n}" for n in range(10)]
Causes = Mapping[Flags, float]


class Simulated:
    """A training that a set of variations changes, each at its rate; the empty set stands for what varies by itself."""

    def __init__(self, causes: Causes, seed: int = 0) -> None:
        self.causes, self._random = causes, random.Random(seed)
        self.matching: dict[Flags, int] = {}
        self.differing: dict[Flags, Finding] = {}
        self.launches = 0

    def __call__(self, varied: Flags, runs: int) -> Finding:
        if varied in self.differing:
            return self.differing[varied]
        done = self.matching.get(varied, 0)
        if not done:  # the control's first run is the first of every trial
            self.launches += not varied
            done = 1
        while done < runs:
            done += 1
            self.launches += 1
            shown = [c for c, rate in self.causes.items() if c <= varied and self._random.random() < rate]
            if shown:
                self.matching.pop(varied, None)
                place = min(list(self.causes).index(cause) for cause in shown)
                self.differing[varied] = Finding(Outcome.DIFFERS, done, (place,))
                return self.differing[varied]
            self.matching[varied] = done
        return Finding(Outcome.AGREES, done)


def told(training: Simulated, order: Sequence[str] = MANY, **options: float) -> Told:
    return Blaming(training, MANY, lambda found: (order, 1), **options).run()  # type: ignore[arg-type]


def single(*variations: str, rate: float = 1.0) -> Causes:
    return {frozenset({one}): rate for one in variations}


@given(st.lists(st.sampled_from(MANY), max_size=4, unique=True), st.permutations(MANY))
def test_it_finds_exactly_what_matters_where_every_run_deviates(causes: list[str], order: list[str]) -> None:
    training = Simulated(single(*causes))
    found = told(training, order)
    assert found.blames is not None
    assert {blame.variation for blame in found.blames} == set(causes)
    assert all(blame.beside == () for blame in found.blames)
    assert all(blame.found == training.differing[blame.varied] for blame in found.blames)
    assert training.matching[frozenset(MANY) - set(causes)] == found.matching >= 5


@given(st.permutations(MANY), st.integers(2, 4))
def test_what_matters_only_together_is_told_with_no_more_than_that(order: list[str], size: int) -> None:
    training = Simulated({frozenset(order[:size]): 1.0})
    found = told(training)
    assert found.blames is not None
    (blame,) = found.blames
    assert blame.varied == frozenset(order[:size])


def test_what_differed_with_more_held_still_is_no_agreement_with_less() -> None:
    """By chance, 17 runs agree here with v1 alone held still, though runs with v2 and v3 as well had differed."""
    training = Simulated({frozenset({"v0"}): 0.25, frozenset({"v1"}): 0.5}, 8388607)
    found = told(training, ["v3", "v2", "v0", "v1", "v4", "v5", "v6", "v7", "v8", "v9"])
    assert {blame.variation for blame in found.blames or ()} == {"v0", "v1"}


@given(
    rates=st.lists(st.sampled_from([0.25, 0.5, 1.0]), max_size=3),
    order=st.permutations(MANY),
    seed=st.integers(0, 2**32),
)
def test_it_never_tells_what_its_own_runs_contradict(rates: list[float], order: list[str], seed: int) -> None:
    training = Simulated({frozenset({MANY[n]}): rate for n, rate in enumerate(rates)}, seed)
    found = told(training, order)
    assert found.blames is not None
    blamed = {blame.variation for blame in found.blames}
    assert training.matching[frozenset(MANY) - blamed] == found.matching
    assert all(blame.varied in training.differing for blame in found.blames)


@pytest.mark.parametrize("rates", [(0.25,), (1.0, 0.25), (0.25, 0.25), (1.0, 0.5, 0.25), ()])
def test_the_answer_is_wrong_no_oftener_than_asked_for(rates: tuple[float, ...]) -> None:
    tries, wrong = 600, 0
    for seed in range(tries):
        names = random.Random(seed).sample(MANY, len(rates))
        order = random.Random(seed + 1).sample(MANY, len(MANY))
        training = Simulated({frozenset({n}): rate for n, rate in zip(names, rates, strict=True)}, seed)
        found = told(training, order)
        wrong += found.blames is None or {blame.variation for blame in found.blames} != set(names)
    # Twice the standard deviation of 600 draws above 5 %.
    assert wrong / tries < 0.05 + 2 * (0.05 * 0.95 / tries) ** 0.5


@pytest.mark.parametrize("rate", [1.0, 0.5, 0.25, 0.1])
def test_a_training_that_differs_by_itself_is_blamed_on_nothing(rate: float) -> None:
    tries, wrong = 600, 0
    for seed in range(tries):
        training = Simulated({NONE: rate}, seed)
        found = told(training, random.Random(seed).sample(MANY, len(MANY)))
        wrong += bool(found.blames)
    assert wrong / tries < 0.05 + 2 * (0.05 * 0.95 / tries) ** 0.5


def test_the_control_comes_first_and_ends_it_where_it_differs() -> None:
    training = Simulated({NONE: 1.0, **single("v0")})
    assert told(training).blames is None
    assert set(training.differing) == {NONE}
    assert training.launches == 2


def test_a_control_that_fails_cannot_be_judged() -> None:
    found = Blaming(lambda varied, runs: Finding(Outcome.FAILS, 1), MANY, lambda found: (MANY, 1)).run()
    assert found.blames is None
    assert found.control.outcome is Outcome.FAILS


def test_it_is_cheap_where_nothing_matters_and_where_one_thing_does() -> None:
    nothing, one = Simulated({}), Simulated(single("v3"))
    assert told(nothing).blames == ()
    matching = told(one, ["v3", *MANY]).matching
    # The control, and the runs in which all varies; for one, a surer control, what differs, its proof, itself alone.
    assert nothing.launches <= 5 + 15
    assert one.launches <= 12 + 1 + matching + 1
