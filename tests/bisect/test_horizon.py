"""How far runs go, on simulated trainings of an hour: what is overlooked, what it costs, what an answer rests on."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detaudit.bisect.search import Answer, Facts, Search
from detaudit.judge.policy import END, Flags, Horizon, OneRun, TrialOutcome, TrialResult
from tests.bisect.families import EARLY, FAMILIES, LATE_AND_RARE, STEPS, race
from tests.bisect.simulated import Case, Cause, SimulatedTraining, case

TRIES = 200
SHARE = STEPS // 16


def wrong(causes: Sequence[Cause], tries: int = TRIES, full: int | None = None) -> float:
    cases = [case(causes, seed) for seed in range(tries)]
    return sum(not one.is_right(one.bisect(full)) for one in cases) / tries


def accepted(tries: int = TRIES) -> float:
    """Return twice the standard deviation of so many draws above 5 %."""
    return 0.05 + 2 * math.sqrt(0.05 * 0.95 / tries)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_answer_is_wrong_no_more_often_than_accepted(family: str) -> None:
    assert wrong(FAMILIES[family]) <= accepted()


@pytest.mark.parametrize(("rate", "full"), [(0.95, 2), (0.78, 3)])
@pytest.mark.parametrize("others", [(), (EARLY,)])
def test_whole_runs_notice_what_begins_late_and_shows_in_nearly_all(
    rate: float, full: int, others: Sequence[Cause]
) -> None:
    assert wrong((*others, Cause(STEPS // 2, rate=rate)), full=full) <= accepted()


def test_what_begins_late_and_is_rare_takes_as_many_whole_runs_as_it_always_did() -> None:
    rare = LATE_AND_RARE["(X) step 1, and 1 run in 4 at 0.5 T"]
    assert wrong(rare) > 0.3
    assert wrong(rare, full=17) <= accepted()


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("candidates", [12, 40])
def test_early_causes_cost_three_trainings(number: int, candidates: int) -> None:
    for seed in range(30):
        one = case([Cause(step + 1) for step in range(number)], seed, candidates=candidates, good=1.0)
        answer = one.bisect()
        assert one.is_right(answer)
        assert one.training.cost <= 3.5
        assert one.training.whole_runs == [one.needed] * 2, "only the answer is run to its end"
        assert (answer.through, answer.complete) == (SHARE, 2)


def test_the_length_in_steps_and_the_start_up_hardly_matter() -> None:
    for steps in (100, 10_000, 1_000_000):
        one = case([EARLY], 0, steps, 3600 / steps, good=1.0)
        one.bisect()
        assert one.training.cost < 3.5


class Checked(Horizon):
    """Checks that no agreement counts which is older than the latest difference."""

    def __init__(self, training: SimulatedTraining) -> None:
        super().__init__(training)
        self._training = training

    def probe(self, flags: Flags, runs: int) -> TrialResult:
        found = super().probe(flags, runs)
        if found.outcome is TrialOutcome.MATCHES:
            latest = max((run.through for kept in self._training.kept.values() for run in differing(kept)), default=0)
            assert through(self._training.kept[flags], min(latest, STEPS)) >= runs
        return found


@pytest.mark.parametrize("begins", [SHARE - 10, SHARE + 10, STEPS // 3, STEPS - 100])
def test_an_early_cause_does_not_hide_a_later_one(begins: int) -> None:
    for seed in range(40):
        one = case([EARLY, race(5, begins)], seed)
        assert one.is_right(Search(Checked(one.training), one.rank).run())


causes = st.builds(
    Cause,
    step=st.integers(1, STEPS),
    hazard=st.sampled_from([None, 0.5, 0.01]),
    rate=st.sampled_from([1.0, 0.5, 0.25]),
)


def differing(runs: Sequence[OneRun]) -> list[OneRun]:
    return [run for run in runs if run.outcome is TrialOutcome.DIFFERS]


def through(runs: Sequence[OneRun], step: int | None) -> int:
    return sum(run.outcome is TrialOutcome.MATCHES and run.through >= (END if step is None else step) for run in runs)


def agrees(one: Case, answer: Answer) -> None:
    """An answer says what its runs show."""
    assert answer.needed is not None
    runs = one.training.kept[frozenset(answer.needed)]
    assert not differing(runs)
    assert answer.matching == through(runs, answer.through)
    assert (answer.complete or answer.matching) == through(runs, None)
    assert answer.matching >= 16
    for flag in answer.needed:
        left_out = one.training.kept[frozenset(answer.needed) - {flag}]
        shown = answer.without[flag]
        own = [run.through for run in differing(left_out)]
        agreeing = through(left_out, max(own, default=0))
        assert shown.outcome is TrialOutcome.DIFFERS
        assert len(own) >= 2 or agreeing >= 3, "seen twice, or often enough to say that it is rare"
        assert through(runs, min(max(own, default=0), STEPS)) >= (5 if agreeing == 0 else 2)


@settings(max_examples=200)
@given(st.lists(causes, max_size=3), st.integers(0, 2**32), st.sampled_from([None, 3, 16]))
def test_an_answer_says_what_its_runs_show(drawn: list[Cause], seed: int, full: int | None) -> None:
    one = case(drawn, seed)
    answer = one.bisect(full)
    if answer.needed is None:
        assert drawn
        return
    agrees(one, answer)
    assert (answer.complete or answer.matching) >= (full or 2)


@given(st.lists(causes, max_size=2), st.integers(0, 2**32), st.integers(1, 60))
def test_an_interruption_loses_nothing(drawn: list[Cause], seed: int, at: int) -> None:
    one = case(drawn, seed)
    run = one.training.run
    left = at

    def interrupted(flags: Flags, through: int, more: int = 0) -> None:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        run(flags, through)

    one.training.run = interrupted  # type: ignore[method-assign]
    try:
        one.bisect()
    except KeyboardInterrupt:
        before = {flags: list(runs) for flags, runs in one.training.kept.items()}
        one.training.run = run  # type: ignore[method-assign]
        answer = one.bisect()
        for flags, runs in before.items():
            assert one.training.kept[flags][: len(runs)] == runs
        if answer.needed is not None:
            agrees(one, answer)


def test_agreement_through_less_than_a_later_difference_is_given_up() -> None:
    facts = Facts(Horizon(SimulatedTraining({})))
    near, far = (TrialResult(TrialOutcome.MATCHES, 3, through=step) for step in (100, None))
    facts.ask(frozenset("ab"), lambda flags: far)
    facts.ask(frozenset("a"), lambda flags: near)
    assert facts.best == frozenset("a")
    facts.ask(frozenset("c"), lambda flags: TrialResult(TrialOutcome.DIFFERS, 2, step=101))
    assert facts.best == frozenset("ab")
