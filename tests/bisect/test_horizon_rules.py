"""How far runs go, rule by rule, on scripted trainings: what is run, in which order, what an answer rests on."""

from collections.abc import Sequence

import pytest

from detaudit.bisect.search import Facts
from detaudit.judge.policy import END, NONE, START, Flags, Horizon, OneRun, TrialResult
from tests.bisect.scripted import DIFFERS, FAILS, MATCHES, Scripted, differs, known, matches

A, B, C = frozenset("a"), frozenset("b"), frozenset("c")
ERROR = 0.05 / 3
SHARE = 63  # a sixteenth of 1,000 steps


def prove(training: Scripted, flags: Flags = A, without: Sequence[Flags] = (), *, error: float = ERROR) -> TrialResult:
    return Horizon(training).prove(flags, 16, error, without)


def test_an_unmodified_script_goes_four_times_as_far_until_its_length_is_known() -> None:
    training = Scripted()
    found = prove(training, NONE)
    assert training.of(NONE) == [START, 10, 40, 160, 640, 2560, *[SHARE] * 12, END]
    assert found == TrialResult(MATCHES, 16, name="none", through=SHARE, complete=2)


def test_what_may_be_the_answer_goes_to_the_end_after_sixteen_times_the_first_step() -> None:
    training = Scripted()
    assert prove(training) == TrialResult(MATCHES, 16, name="a", through=SHARE, complete=2)
    assert training.asked[0] == (NONE, START), "all steps are counted in those of 10 s without flags"
    assert training.of(NONE) == [START]
    assert training.of(A) == [10, 10, 40, 160, END, *[SHARE] * 13, END]


def test_two_steps_at_least() -> None:
    training = Scripted(first=1)
    prove(training, NONE)
    assert training.of(NONE)[:4] == [START, 2, 2, 8]
    assert Horizon(Scripted()).probe(A, 1).through == 2


@pytest.mark.parametrize(("first", "share"), [(63, 63), (64, 64), (999, 999), (10, 63)])
def test_many_runs_go_through_a_sixteenth_or_through_the_first_steps_if_that_is_further(first: int, share: int) -> None:
    assert prove(known(first=first)).through == share


def test_known_runs_count_again() -> None:
    training = known()
    prove(training)
    asked = list(training.asked)
    assert asked == [(A, 10)] * 2 + [(A, SHARE)] * 14 + [(A, END)] * 2
    announced: list[tuple[int, int, int]] = []
    found = Horizon(training, announce=lambda *runs: announced.append(runs)).prove(A, 16, ERROR, ())
    assert (training.asked, announced) == (asked, [(0, SHARE, 0)])
    assert found == prove(training)


def test_the_runs_that_an_answer_still_needs_are_announced_once_the_length_is_known() -> None:
    training = Scripted()
    announced: list[tuple[int, ...]] = []
    Horizon(training, announce=lambda *runs: announced.append((*runs, len(training.asked)))).prove(NONE, 16, ERROR, ())
    assert announced == [(12, SHARE, 1, 6)]


@pytest.mark.parametrize(
    ("seconds", "full", "whole"),
    [
        (1000.0, None, 2),
        (200.0, None, 3),
        (37.0, None, 16),
        (0.0, None, 16),
        (1.0, 4, 4),
        (1000.0, 1, 1),
        (1.0, 20, 20),
    ],
)
def test_more_runs_go_to_the_end_if_that_takes_less_time(seconds: float, full: int | None, whole: int) -> None:
    training = known(seconds=seconds)
    horizon = Horizon(training, full)
    found = horizon.prove(A, 16, ERROR, ())
    assert horizon.complete_runs(16) == whole
    assert (found.through, found.complete) == (SHARE, whole)
    assert found.runs >= 16
    assert training.of(A).count(END) == whole


def test_as_many_runs_as_an_answer_has_may_go_to_the_end_while_the_length_is_unknown() -> None:
    assert Horizon(Scripted()).complete_runs(16) == 16


@pytest.mark.parametrize("seconds", [5.0, 60.0, 200.0, 1000.0])
def test_a_training_whose_runs_cannot_be_ended_has_whole_runs(seconds: float) -> None:
    """As one that records no steps: none of them counts for less than the others."""
    training = Scripted(seconds=seconds, whole=True)
    announced: list[tuple[int, int, int]] = []
    found = Horizon(training, announce=lambda *runs: announced.append(runs)).prove(NONE, 16, ERROR, ())
    assert found == TrialResult(MATCHES, 16, name="none")
    assert len(training.asked) == 16
    assert announced == [(0, END, 14)]
    assert Horizon(training, 20).prove(NONE, 16, ERROR, ()).runs == 20


@pytest.mark.parametrize("at", range(2, 18))
def test_any_difference_ends_a_proof(at: int) -> None:
    training = known(shows={A: [*[None] * at, 5]})
    assert prove(training) == TrialResult(DIFFERS, 2 + at - 1, (5, 7), "a", 5)
    assert len(training.asked) == at + 1


def test_a_set_that_fails_ends_the_question() -> None:
    training = Scripted({NONE: [None, FAILS]})
    assert prove(training, NONE) == TrialResult(FAILS, 2, name="none")
    assert training.of(NONE) == [START, 10]
    assert prove(training, NONE) == Horizon(training).probe(NONE, 2) == TrialResult(FAILS, 2, name="none")
    assert len(training.asked) == 2


def test_the_first_contradiction_counts() -> None:
    kept = [matches(900), *differs(500), OneRun(FAILS, 900, name="kept"), *differs(100)]
    assert Horizon(known({"a": kept})).probe(A, 2) == TrialResult(DIFFERS, 2, (500,), "kept", 500)


def test_only_runs_that_were_compared_that_far_count_beside_a_difference() -> None:
    """Of 21 runs, 19 were compared through less than the step at which the last one differs."""
    kept = [matches(END), *[matches(100, 100)] * 19]
    horizon = Horizon(Scripted(kept={NONE: [*kept, *differs(500)]}))
    facts = Facts(horizon)
    found = facts.ask(NONE, lambda flags: horizon.prove(flags, 16, ERROR, ()))
    assert (found.runs, found.step, facts.rate) == (2, 500, 1.0)
    assert Horizon(Scripted(kept={NONE: [*kept, *differs(100)]})).probe(NONE, 2).runs == 21


def test_probes_go_a_quarter_beyond_the_latest_difference_in_leaps_and_three_times() -> None:
    training = known({"b": [matches(900), *differs(300, 500, 40)]}, {A: [None, None, 30]})
    horizon = Horizon(training)
    assert horizon.probe(C, 2) == TrialResult(MATCHES, 2, name="c", through=10, complete=0)
    assert horizon.prove(A, 16, ERROR, ()).outcome is MATCHES, "compared through step 10, it matches"
    training.kept[A] += differs(30)
    assert horizon.probe(A, 2).step == 30
    assert horizon.probe(C, 2) == TrialResult(MATCHES, 3, name="c", through=38, complete=0)
    assert horizon.left_out(frozenset("d"), 2).runs == 2, "a flag that may not be needed has enough runs"
    assert horizon.probe(B, 2).step == 300
    assert horizon.probe(C, 4) == TrialResult(MATCHES, 4, name="c", through=625, complete=0)
    assert training.of(C) == [10, 10, 38, 38, 38, 608, *[625] * 4]
    assert training.of(frozenset("d")) == [10, 38, 38]


@pytest.mark.parametrize(("latest", "through"), [(799, 999), (800, END), (END, END)])
def test_no_run_is_ended_at_the_last_step(latest: int, through: int) -> None:
    training = known({"b": [matches(END), *differs(latest)]})
    horizon = Horizon(training)
    horizon.probe(B, 2)
    found = horizon.probe(A, 3)
    assert training.of(A) == [10, 160, *[through] * 3]
    assert (found.runs, found.through) == (3, None if through == END else through)


def test_a_late_difference_with_more_flags_counts_only_for_flags_that_ran_so_far() -> None:
    horizon = Horizon(known({"a": [matches(400)], "b": [matches(400), matches(400, 400)]}))
    assert [horizon.went_through(flags, 10) for flags in (A, B, C)] == [True] * 3
    assert [horizon.went_through(flags, 400) for flags in (A, B, C)] == [False, True, False]
    assert not horizon.went_through(B, 401)
    assert not horizon.went_through(A, 11)


@pytest.mark.parametrize(("first", "step", "times"), [(10, 63, 2), (10, 64, 3), (20, 80, 2), (20, 81, 3)])
def test_a_cause_is_seen_twice_or_three_times_if_it_is_late(first: int, step: int, times: int) -> None:
    training = known({"b": [matches(500), *differs(step)]}, {B: [None, step, None, step, step]}, first=first)
    prove(training, without=[B])
    assert sum(run.outcome is DIFFERS for run in training.runs(B)) == times
    assert training.of(B) == [4 * step] * (2 if times == 2 else 4)
    assert training.asked[: len(training.of(B))] == [(B, 4 * step)] * len(training.of(B)), "before the answer is run"


@pytest.mark.parametrize(
    ("reference", "steps", "through"),
    [
        (900, (2,), 10),
        (900, (3,), 12),
        (900, (100, 20), 400),
        (900, (500,), 900),
        (END, (249,), 996),
        (END, (250,), END),
    ],
)
def test_a_cause_is_sought_through_four_times_its_step_but_no_further_than_runs_match(
    reference: int, steps: tuple[int, ...], through: int
) -> None:
    training = known({"b": [matches(reference), *differs(*steps)]}, {B: [FAILS]})
    prove(training, without=[B])
    assert training.of(B) == [through], "a set that fails is not run again"


def test_a_cause_is_sought_six_times() -> None:
    training = known({"b": [matches(20), matches(20, 20), *differs(5)]})
    prove(training, without=[A, B])
    assert training.of(B) == [20] * 6
    prove(training, without=[A, B])
    assert training.of(B) == [20] * 6, "matches that are known count"


@pytest.mark.parametrize(
    ("error", "without", "runs"),
    [
        (ERROR * 1.0001, {"b": 3}, 7),
        (ERROR * 1.0001, {"b": 4}, 5),
        (0.001, {"b": 4}, 11),
        (0.0001, {"b": 4}, 16),
        (0.25, {"b": 3}, 2),
        (0.24, {"b": 3}, 3),
        (1.0, {"b": 3}, 2),
        (0.001, {"b": 6}, 8),
        (0.001, {"b": 9}, 8),
        (ERROR * 1.0001, {"b": 4, "c": 3}, 7),
    ],
)
def test_a_late_cause_that_was_seen_is_gone_if_runs_outlast_it(
    error: float, without: dict[str, int], runs: int
) -> None:
    """The probability of that by chance is 1 / C(m + n - 1, m), if it was seen m times."""
    kept = {flag: [matches(900), *differs(500, *[400] * (seen - 1))] for flag, seen in without.items()}
    training = known(kept)
    found = prove(training, without=[frozenset(flag) for flag in without], error=error)
    assert training.of(A) == [10] * 2 + [SHARE] * 14 + [500] * runs + [END] * 2
    assert found == TrialResult(MATCHES, 16 + runs, name="a", through=SHARE, complete=2)


@pytest.mark.parametrize(
    ("kept", "runs"),
    [
        ([matches(900), matches(499, 499), *differs(500, 400, 500)], 7),
        ([matches(900), matches(500, 500), *differs(500, 400, 500)], 16),
    ],
)
def test_a_late_cause_that_shows_at_a_rate_takes_all_runs(kept: list[OneRun], runs: int) -> None:
    training = known({"b": kept, "c": [matches(900), *differs(70, 70, 70, 70)]})
    prove(training, without=[C, B], error=ERROR * 1.0001)
    assert training.of(A).count(500) == runs
    failing = known({"b": kept, "c": [OneRun(FAILS, 900)]})
    prove(failing, without=[B, C], error=ERROR * 1.0001)
    assert failing.of(A).count(500) == 16, "nothing is known of a cause that was not seen"


def test_a_cause_that_shows_by_a_sixteenth_takes_no_more_runs() -> None:
    training = known({"b": [matches(900), matches(SHARE, SHARE), *differs(SHARE, SHARE)]})
    prove(training, without=[B])
    assert training.of(A) == [10] * 2 + [SHARE] * 14 + [END] * 2
