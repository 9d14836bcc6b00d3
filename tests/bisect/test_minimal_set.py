"""The search, on simulated trainings: each cause shows at its own rate until its flags are set."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.bisect import search
from detaudit.bisect.search import Answer, Ask, Rules, Search, WholeRuns
from detaudit.judge.policy import Flags, TrialOutcome, TrialResult


class Simulated:
    """A training whose causes are each fixed by a flag; each shows in a run at its rate, at its own place."""

    def __init__(
        self,
        causes: Mapping[str, float],
        seed: int = 0,
        fails: Sequence[str] = (),
        together: Sequence[Flags] = (),
        alternatives: Mapping[str, str] | None = None,
    ) -> None:
        self.causes, self._random = causes, random.Random(seed)
        self._fails, self._together, self._alternatives = fails, together, alternatives or {}
        self.matching: dict[Flags, int] = {}
        self.asked: list[Flags] = []
        self.launched = 0

    def fixed(self, cause: str, flags: Flags) -> bool:
        return cause in flags or self._alternatives.get(cause) in flags

    def __call__(self, flags: Flags, runs: int) -> TrialResult:
        self.asked.append(flags)
        if flags & set(self._fails) or any(failing <= flags for failing in self._together):
            self.launched += 1
            return TrialResult(TrialOutcome.FAILS, 1)
        left = [cause for cause in self.causes if not self.fixed(cause, flags)]
        done = self.matching.get(flags, 0)
        while done < runs:
            done += 1
            self.launched += 1
            shown = [cause for cause in left if self._random.random() < self.causes[cause]]
            if shown and done > 1:
                place = min(list(self.causes).index(cause) for cause in shown)
                return TrialResult(TrialOutcome.DIFFERS, done, (place,))
            self.matching[flags] = done
        return TrialResult(TrialOutcome.MATCHES, done)


class Ranking:
    """Puts the flag of the cause that shows first in front, as a good order would."""

    def __init__(self, candidates: Sequence[str], causes: Sequence[str] = ()) -> None:
        self._candidates, self._causes = candidates, causes

    def __call__(self, found: TrialResult) -> tuple[Sequence[str], int]:
        first = self._causes[found.position[0]] if self._causes and found.position else ""
        return sorted(self._candidates, key=lambda flag: flag != first), 1


MANY = [f"f{n}" for n in range(24)]


@given(needed=st.lists(st.sampled_from(MANY), max_size=3, unique=True), order=st.permutations(MANY))
def test_it_finds_exactly_what_is_needed_if_every_run_differs(needed: list[str], order: list[str]) -> None:
    training = Simulated(dict.fromkeys(needed, 1.0))
    answer = Search(WholeRuns(training), Ranking(order)).run()
    assert answer.needed is not None
    assert set(answer.needed) == set(needed)
    assert answer.proven
    assert answer.matching >= 5


@given(needed=st.lists(st.sampled_from(MANY), min_size=1, max_size=3, unique=True))
def test_a_good_order_makes_it_cheap(needed: list[str]) -> None:
    training = Simulated(dict.fromkeys(needed, 1.0))
    answer = Search(WholeRuns(training), Ranking(MANY, needed)).run()
    proof = answer.matching
    # Two runs without flags, two for each prefix, two for each flag left out.
    assert training.launched - proof <= 4 * len(needed)


@given(
    rates=st.lists(st.sampled_from([0.25, 0.5, 1.0]), max_size=3),
    order=st.permutations(MANY),
    seed=st.integers(0, 2**32),
)
def test_it_never_returns_a_set_that_its_own_runs_contradict(rates: list[float], order: list[str], seed: int) -> None:
    training = Simulated(dict(zip(MANY, rates, strict=False)), seed)
    answer = Search(WholeRuns(training), Ranking(order)).run()
    if answer.needed is None:
        assert rates
        return
    assert training.matching[frozenset(answer.needed)] == answer.matching
    assert set(answer.without) == set(answer.needed)
    assert all(found.outcome is TrialOutcome.DIFFERS for found in answer.without.values())


@pytest.mark.parametrize("rates", [(0.25,), (1.0, 0.25), (0.25, 0.25), (1.0, 0.5, 0.25), ()])
def test_the_answer_is_wrong_no_more_often_than_accepted(rates: tuple[float, ...]) -> None:
    tries, wrong = 600, 0
    for seed in range(tries):
        order = random.Random(seed).sample(MANY, len(MANY))
        causes = dict(zip(random.Random(seed + 1).sample(MANY, len(rates)), rates, strict=True))
        answer = Search(WholeRuns(Simulated(causes, seed)), Ranking(order), error=0.05).run()
        wrong += answer.needed is None or set(answer.needed) != set(causes)
    # Twice the standard deviation of 600 draws above 5 %.
    assert wrong / tries < 0.05 + 2 * (0.05 * 0.95 / tries) ** 0.5


def test_a_training_that_nothing_fixes() -> None:
    training = Simulated({"no flag of ours": 1.0, "f3": 1.0})
    answer = Search(WholeRuns(training), Ranking(MANY)).run()
    assert answer.needed is None
    assert not answer.proven


def test_a_flag_with_which_it_fails_is_replaced_by_its_alternative() -> None:
    rules = Rules(alternatives={"f2": ["weaker"]})
    training = Simulated({"f2": 1.0, "f9": 1.0}, fails=["f2"], alternatives={"f2": "weaker"})
    answer = Search(WholeRuns(training), Ranking(MANY, ["f2", "f9"]), rules).run()
    assert answer.needed is not None
    assert set(answer.needed) == {"weaker", "f9"}
    assert answer.failing == ("f2",)


def test_flags_that_conflict_are_never_set_together() -> None:
    rules = Rules(conflicts={"f1": ["f2"]})
    training = Simulated({"f2": 1.0})
    answer = Search(WholeRuns(training), Ranking(MANY), rules).run()
    assert answer.needed == ("f2",)
    assert not any({"f1", "f2"} <= flags for flags in training.asked)


def test_what_a_flag_requires_is_set_with_it_and_is_not_needed_itself() -> None:
    rules = Rules(requires={"f5": ["f0", "f1"]})
    training = Simulated({"f5": 1.0})
    answer = Search(WholeRuns(training), Ranking(MANY, ["f5"]), rules).run()
    assert answer.needed == ("f5",)
    assert frozenset({"f5", "f0", "f1"}) in training.asked
    assert frozenset({"f5"}) not in training.asked


def test_required_flags_that_are_enough_are_the_answer() -> None:
    """As for a training with TensorFlow that lacks nothing but a seed."""
    rules = Rules(requires={"deterministic": ["f0", "f1", "f2"]})
    training = Simulated({"f1": 1.0})
    answer = Search(WholeRuns(training), Ranking(["deterministic", *MANY], ["deterministic"]), rules).run()
    assert (answer.needed, answer.proven) == (("f1",), True)


requirements = st.dictionaries(
    st.sampled_from(MANY[12:]), st.lists(st.sampled_from(MANY[:12]), min_size=1, max_size=4, unique=True), max_size=3
)
few = st.lists(st.sampled_from(MANY), min_size=1, max_size=3, unique=True)


@given(needed=few, requires=requirements, order=st.permutations(MANY))
def test_the_answer_is_minimal_over_sets_with_all_they_require(
    needed: list[str], requires: dict[str, list[str]], order: list[str]
) -> None:
    rules = Rules(requires=requires)
    answer = Search(WholeRuns(Simulated(dict.fromkeys(needed, 1.0))), Ranking(order), rules).run()
    assert answer.needed is not None
    assert set(needed) <= rules.closed(answer.needed)
    for flag in answer.needed:
        assert not set(needed) <= rules.without(answer.needed, flag)


@given(
    needed=few,
    failing=st.lists(st.frozensets(st.sampled_from(MANY), min_size=2, max_size=3), min_size=1, max_size=3),
    order=st.permutations(MANY),
)
def test_flags_that_fail_only_together_are_not_given_up(
    needed: list[str], failing: list[Flags], order: list[str]
) -> None:
    training = Simulated(dict.fromkeys(needed, 1.0), together=failing)
    answer = Search(WholeRuns(training), Ranking(order)).run()
    assert answer.failing == ()
    if any(together <= set(needed) for together in failing):
        assert answer.needed is None
    else:
        assert set(answer.needed or ()) == set(needed)


@given(
    needed=few,
    conflicts=st.lists(st.tuples(st.sampled_from(MANY), st.sampled_from(MANY)), max_size=3),
    order=st.permutations(MANY),
)
def test_a_conflict_does_not_hide_what_is_needed(
    needed: list[str], conflicts: list[tuple[str, str]], order: list[str]
) -> None:
    pairs = {a: [b] for a, b in conflicts if a != b}
    rules = Rules(conflicts=pairs)
    answer = Search(WholeRuns(Simulated(dict.fromkeys(needed, 1.0))), Ranking(order), rules).run()
    if any(a in needed and b in needed for a, (b,) in pairs.items()):
        assert answer.needed is None
    else:
        assert set(answer.needed or ()) == set(needed)


def test_nothing_is_asked_twice() -> None:
    training = Simulated({"f3": 1.0, "f7": 1.0})
    Search(WholeRuns(training), Ranking(MANY)).run()
    differing = [flags for flags in training.asked if flags not in training.matching]
    assert len(differing) == len(set(differing))


def test_after_an_interruption_the_best_set_is_known() -> None:
    training = Simulated({"f0": 1.0})

    def interrupted(flags: Flags, runs: int) -> TrialResult:
        if runs >= 5 and flags:
            raise KeyboardInterrupt
        return training(flags, runs)

    search = Search(WholeRuns(interrupted), Ranking(MANY))
    with pytest.raises(KeyboardInterrupt):
        search.run()
    assert search.best == frozenset({"f0"})


def test_a_training_that_cannot_be_judged_has_no_answer() -> None:
    def broken(flags: Flags, runs: int) -> TrialResult:
        return TrialResult(TrialOutcome.FAILS, 1)

    assert Search(WholeRuns(broken), Ranking(MANY)).run() == Answer(None, matching=1, differed=False)


FAILS = TrialResult(TrialOutcome.FAILS, 1)


def differs(runs: int = 2) -> TrialResult:
    return TrialResult(TrialOutcome.DIFFERS, runs, (0,))


class Logged:
    """Keeps which flags were asked for with how many runs; ``answer`` is None for runs that match."""

    def __init__(self, answer: Callable[[Flags], TrialResult | None]) -> None:
        self._answer = answer
        self.asked: list[tuple[str, int]] = []

    def __call__(self, flags: Flags, runs: int) -> TrialResult:
        self.asked.append(("".join(sorted(flags)), runs))
        return self._answer(flags) or TrialResult(TrialOutcome.MATCHES, runs)


def needs_both(runs: int = 2) -> Callable[[Flags], TrialResult | None]:
    return lambda flags: None if {"a", "b"} <= flags else differs(runs)


@pytest.mark.parametrize(
    ("rate", "options", "base", "probe", "proof"),
    [
        (2, {}, 16, 2, 17),  # 5 % are shared by the runs without flags, a wrong set, and each flag
        (11, {}, 16, 17, 43),  # 1 run in 10 differs: 80 % sure on the way
        (2, {"confirm": 30}, 30, 2, 30),
        (2, {"error": 0.5}, 8, 2, 9),
        (2, {"error": 0.95}, 5, 2, 6),
    ],
)
def test_as_many_runs_as_an_answer_needs(rate: int, options: dict[str, Any], base: int, probe: int, proof: int) -> None:
    trials = Logged(needs_both(rate))
    search = Search(WholeRuns(trials), Ranking("abcd"), **options)
    assert search.best is None
    answer = search.run()
    assert answer == Answer(("a", "b"), proof, {"b": differs(rate), "a": differs(rate)}, proven=True)
    assert trials.asked == [("", base), ("a", probe), ("ab", probe), ("b", probe), ("ab", proof)]
    assert search.best == frozenset("ab")


def test_a_training_that_needs_nothing() -> None:
    trials = Logged(lambda flags: None)
    assert Search(WholeRuns(trials), Ranking("ab"), confirm=30).run() == Answer((), 30, proven=True, differed=False)
    assert trials.asked == [("", 30)]
    assert Search(WholeRuns(Logged(lambda flags: None)), Ranking("ab")).run().matching == 16


class Shortened(WholeRuns):
    """Answers by runs of which 2 go to the end; keeps what it was asked to prove."""

    def __init__(self, ask: Ask) -> None:
        super().__init__(ask)
        self.asked: list[tuple[Flags, int, float, Sequence[Flags]]] = []

    def prove(self, flags: Flags, runs: int, error: float, without: Sequence[Flags]) -> TrialResult:
        self.asked.append((flags, runs, error, without))
        found = super().prove(flags, runs, error, without)
        return replace(found, through=63, complete=2) if found.outcome is TrialOutcome.MATCHES else found


def test_an_answer_says_how_far_its_runs_went() -> None:
    trials = Shortened(Logged(needs_both()))
    answer = Search(trials, Ranking("abcd")).run()
    assert answer == Answer(("a", "b"), 17, {"b": differs(), "a": differs()}, proven=True, through=63, complete=2)
    none, a, b = frozenset[str](), frozenset("a"), frozenset("b")
    assert trials.asked == [(none, 16, 0.05 / 3, ()), (a | b, 17, 0.05 / 4, [a, b])]
    answer = Search(Shortened(Logged(lambda flags: None)), Ranking("ab")).run()
    assert answer == Answer((), 16, proven=True, differed=False, through=63, complete=2)


def test_a_flag_without_which_it_fails_is_not_proven_to_be_needed() -> None:
    trials = Logged(lambda flags: FAILS if flags == {"b"} else needs_both()(flags))
    answer = Search(WholeRuns(trials), Ranking("abcd")).run()
    assert answer == Answer(("a", "b"), 17, {"b": differs(), "a": FAILS}, proven=False)


def contradicted(flags: Flags, runs: int) -> TrialResult:
    """Every flag seems to fix it, until it has run often enough."""
    if "x" in flags:
        return FAILS
    return TrialResult(TrialOutcome.MATCHES, runs) if flags and runs < 10 else differs()


def test_it_gives_up_if_each_proof_is_contradicted(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = Answer(None, failing=("x",))
    assert Search(WholeRuns(contradicted), Ranking("xabc")).run() == given_up
    rounds: list[Sequence[str]] = []

    def run() -> Answer:
        search = Search(WholeRuns(contradicted), Ranking(["x", *MANY]))
        proof = search._proof

        def counted(flags: Sequence[str]) -> Answer | None:
            rounds.append(flags)
            return proof(flags)

        monkeypatch.setattr(search, "_proof", counted)
        return search.run()

    assert run() == given_up
    assert len(rounds) == search.MOST_ROUNDS == 20
    monkeypatch.setattr(search, "MOST_ROUNDS", 1)
    rounds.clear()
    assert (run(), rounds) == (given_up, [["f0"]])


@pytest.mark.parametrize(
    ("needed", "order", "requires", "asked"),
    [
        ("b", "abcd", {"b": "a"}, [("", 16), ("a", 2), ("ab", 2), ("ab", 16)]),
        ("a", "bacd", {"b": "a"}, [("", 16), ("ab", 2), ("a", 2), ("a", 16)]),
        ("c", "bacd", {"b": "ac"}, [("", 16), ("abc", 2), ("ac", 2), ("a", 2), ("c", 2), ("c", 16)]),
        ("b", "bacd", {"b": "a"}, [("", 16), ("ab", 2), ("a", 2), ("ab", 16)]),
    ],
)
def test_a_flag_that_requires_others_is_left_out_if_they_are_enough(
    needed: str, order: str, requires: dict[str, str], asked: list[tuple[str, int]]
) -> None:
    trials = Logged(lambda flags: None if needed in flags else differs())
    answer = Search(WholeRuns(trials), Ranking(order), Rules(requires=requires)).run()
    assert answer == Answer((needed,), 16, {needed: differs()}, proven=True)
    assert trials.asked == asked


def test_required_flags_come_first_and_the_others_in_their_order() -> None:
    search = Search(WholeRuns(Logged(needs_both())), Ranking("abcd"))
    assert search._ordered(frozenset("abcde"), "cab") == ["d", "e", "c", "a", "b"]


def test_each_flag_left_out_has_a_trial_of_its_own() -> None:
    """Although more flags without it were seen to differ already: b and a without c."""

    def answer(flags: Flags) -> TrialResult | None:
        name = "".join(sorted(flags))
        return None if {"a", "c"} <= flags else TrialResult(TrialOutcome.DIFFERS, 2, name=name)

    trials = Logged(answer)
    found = Search(WholeRuns(trials), Ranking("bacd")).run()
    assert {flag: left_out.name for flag, left_out in found.without.items()} == {"c": "a", "a": "c"}
    assert ("ab", 2) in trials.asked
    assert trials.asked[-2:] == [("a", 17), ("ac", 17)]


def test_a_flag_that_turns_out_not_to_be_needed_is_dropped() -> None:
    trials = Logged(lambda flags: None if {"a", "b"} <= flags else differs())
    search = Search(WholeRuns(trials), Ranking("abcd"), Rules(requires={"b": "a"}))
    assert search._proof(["b", "c"]) == Answer(("b",), 17, {"b": differs()}, proven=True)
    assert trials.asked == [("ab", 17), ("a", 16)]
    search = Search(WholeRuns(Logged(lambda flags: None)), Ranking("abcd"))
    assert search._proof(["a"]) == Answer((), 16, proven=True)
    assert Search(WholeRuns(Logged(lambda flags: differs())), Ranking("abcd"))._proof(["a"]) is None


def test_flags_that_require_each_other_are_all_kept() -> None:
    trials = Logged(needs_both())
    search = Search(WholeRuns(trials), Ranking("abcd"), Rules(requires={"a": "b", "b": "a"}))
    assert search._proof(["a", "b"]) == Answer(("a", "b"), 17, {"b": differs(), "a": differs()}, proven=True)


def test_what_is_known_to_fail_is_not_run() -> None:
    trials = Logged(lambda flags: FAILS if {"a", "b"} <= flags else None if {"c"} <= flags else differs())
    search = Search(WholeRuns(trials), Ranking("abcd"))
    assert search.run().needed == ("c",)
    search._failures._together.append(frozenset("cd"))
    asked = len(trials.asked)
    assert search._probe(["a", "c", "d"]) == TrialResult(TrialOutcome.FAILS)
    assert search._probe(["b", "a"]).outcome is TrialOutcome.FAILS
    assert len(trials.asked) == asked
