"""How far runs go, on simulated trainings of an hour: what is overlooked, what it costs, what an answer rests on."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detaudit.auditor.bisect.horizon import END, START, Horizon, Length, OneRun
from detaudit.auditor.bisect.minimal_set import Answer, Search
from detaudit.auditor.bisect.trial_results import NONE, Facts, Flags, TrialOutcome, TrialResult
from tests.auditor.bisect.families import EARLY, FAMILIES, LATE_AND_RARE, STEPS, race
from tests.auditor.bisect.simulated import Case, Cause, SimulatedTraining, case

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
        assert (answer.through, answer.whole) == (SHARE, 2)


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
    assert (answer.whole or answer.matching) == through(runs, None)
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
    assert (answer.whole or answer.matching) >= (full or 2)


@given(st.lists(causes, max_size=2), st.integers(0, 2**32), st.integers(1, 60))
def test_an_interruption_loses_nothing(drawn: list[Cause], seed: int, at: int) -> None:
    one = case(drawn, seed)
    run = one.training.run
    left = at

    def interrupted(flags: Flags, through: int) -> None:
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


class Scripted:
    """A training of 1,000 steps of which each set of flags differs at the steps given, in turn; None matches."""

    def __init__(
        self, *steps: int | None, seconds: float = 1000.0, whole: bool = False, first: Sequence[OneRun] = ()
    ) -> None:
        self._steps, self._seconds, self._whole = steps, seconds, whole
        self.length: Length | None = None
        self.kept: list[OneRun] = list(first)
        self.asked: list[int] = []

    def runs(self, flags: Flags) -> Sequence[OneRun]:
        return self.kept if flags == NONE else []

    def run(self, flags: Flags, through: int) -> None:
        self.asked.append(through)
        reached = END if self._whole or through >= 1000 else 10 if through == START else through
        differs = dict(enumerate(self._steps)).get(len(self.kept))
        furthest = max((run.through for run in self.kept if run.outcome is TrialOutcome.MATCHES), default=-1)
        if differs is not None and differs <= min(reached, furthest):
            self.kept.append(OneRun(TrialOutcome.DIFFERS, differs, min(reached, furthest)))
            return
        if reached == END:
            self.length = Length(1000, self._seconds)
        self.kept.append(OneRun(TrialOutcome.MATCHES, reached, min(reached, furthest)))


def test_an_unmodified_script_goes_four_times_as_far_until_its_length_is_known() -> None:
    training = Scripted()
    found = Horizon(training).prove(NONE, 16, 0.02, ())
    assert training.asked == [START, 10, 40, 160, 640, 2560, *[63] * 12, END]
    assert (found.runs, found.through, found.whole) == (16, 63, 2)


@pytest.mark.parametrize(
    ("seconds", "full", "whole"), [(1000.0, None, 2), (200.0, None, 3), (37.0, None, 16), (1.0, 4, 4), (1000.0, 20, 20)]
)
def test_more_runs_go_to_the_end_if_that_takes_less_time(seconds: float, full: int | None, whole: int) -> None:
    training = Scripted(seconds=seconds)
    found = Horizon(training, full).prove(NONE, 16, 0.02, ())
    assert through(training.kept, None) == whole
    assert (found.whole or found.runs) == whole


def test_a_training_whose_runs_cannot_be_ended_has_whole_runs() -> None:
    """As with files that are compared, or printed losses."""
    training = Scripted(whole=True)
    found = Horizon(training).prove(NONE, 16, 0.02, ())
    assert len(training.asked) == found.runs == 16
    assert (found.through, found.whole) == (None, None)
    short = Scripted(seconds=5.0, whole=True)
    assert Horizon(short).prove(NONE, 16, 0.02, ()).runs == len(short.asked) == 16


def test_the_rate_counts_only_runs_that_were_compared_that_far() -> None:
    """Of 21 runs, 20 were compared through less than the step at which the last one differs."""
    whole = OneRun(TrialOutcome.MATCHES, END)
    short = [OneRun(TrialOutcome.MATCHES, 100, 100)] * 19
    training = Scripted(first=[whole, *short, OneRun(TrialOutcome.DIFFERS, 500, END)])
    horizon = Horizon(training)
    facts = Facts(horizon)
    found = facts.ask(NONE, lambda flags: horizon.prove(flags, 16, 0.02, ()))
    assert (found.runs, found.step, facts.rate) == (2, 500, 1.0)
    early = OneRun(TrialOutcome.DIFFERS, 100, END)
    assert Horizon(Scripted(first=[whole, *short, early])).probe(NONE, 2).runs == 21


@pytest.mark.parametrize(("seen", "runs"), [(1, 60), (2, 11), (3, 7), (4, 5)])
def test_a_cause_that_was_seen_is_gone_if_runs_outlast_it(seen: int, runs: int) -> None:
    training = Scripted(first=[OneRun(TrialOutcome.MATCHES, 900), *[OneRun(TrialOutcome.DIFFERS, 500, 900)] * seen])
    assert Horizon(training)._outlasting([NONE], 0.05 / 3 * 1.0001) == runs
    training.kept.append(OneRun(TrialOutcome.MATCHES, 900, 900))
    assert Horizon(training)._outlasting([NONE], 0.05 / 3) is None, "a rate, which no rank says anything about"


def test_a_late_difference_with_more_flags_counts_only_for_flags_that_ran_so_far() -> None:
    class Both(Scripted):
        def runs(self, flags: Flags) -> Sequence[OneRun]:
            return self.kept

    first = OneRun(TrialOutcome.MATCHES, 10)
    assert Horizon(Both(first=[first])).went_through(NONE, 10)
    assert not Horizon(Both(first=[first])).went_through(NONE, 11)
    assert Horizon(Both(first=[first, *[OneRun(TrialOutcome.MATCHES, 400, 10)] * 2])).went_through(NONE, 400)


def test_agreement_through_less_than_a_later_difference_is_given_up() -> None:
    facts = Facts(Horizon(Scripted()))
    near, far = (TrialResult(TrialOutcome.MATCHES, 3, through=step) for step in (100, None))
    facts.ask(frozenset("ab"), lambda flags: far)
    facts.ask(frozenset("a"), lambda flags: near)
    assert facts.best == frozenset("a")
    facts.ask(frozenset("c"), lambda flags: TrialResult(TrialOutcome.DIFFERS, 2, step=101))
    assert facts.best == frozenset("ab")


def test_a_set_that_fails_ends_the_question() -> None:
    broken = Scripted(first=[OneRun(TrialOutcome.MATCHES, 10), OneRun(TrialOutcome.FAILS)])
    assert Horizon(broken).prove(NONE, 16, 0.02, ()).outcome is TrialOutcome.FAILS
    assert not broken.asked
