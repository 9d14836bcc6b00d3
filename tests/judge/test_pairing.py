"""Which parts of two runs are compared with each other."""

from collections.abc import Sequence

import pytest

from detaudit.judge.comparer import RESULTS, Matched, end, identity, pairs, results
from detaudit.model import UNHOOKED, FinalState, Number, Stage, Training, record_of


def training(
    init: str = "i",
    update: str = "u",
    end: str = "e",
    *,
    placed: bool = False,
    framework: str = "torch",
    loss: Number = 0.5,
) -> Training:
    digests: dict[Stage, dict[int, tuple[str, ...]]] = {Stage.INIT: {0: (init,)}, Stage.UPDATE: {1: (update,)}}
    final = FinalState(digest=end, loss=loss)
    return Training(framework=framework, steps=1, digests=digests, final=final, unplaced=not placed)


def steps(*updates: str) -> Training:
    """Return a training with these updates, which ends by the last of them."""
    digests = {Stage.UPDATE: {step: (update,) for step, update in enumerate(updates, 1)}}
    final = FinalState(digest=updates[-1], loss=0.5)
    return Training(framework="torch", steps=len(updates), digests=digests, final=final, unplaced=True)


def shown(kind: Stage, digest: str) -> Training:
    return Training(framework=kind.value, steps=1, digests={kind: {1: (digest,)}})


def matched(a: Sequence[Training], b: Sequence[Training]) -> list[tuple[int, int]]:
    """Return the places of the parts that are compared with each other, and check that nothing else is in a pair."""
    ours, theirs = record_of(tuple(a)), record_of(tuple(b))
    found = pairs(ours, theirs)
    assert all(pair == Matched(pair.rank, ours.parts[pair.rank], pair.b) for pair in found)
    return [(pair.rank, next(i for i, part in enumerate(theirs.parts) if part is pair.b)) for pair in found]


def test_what_has_a_place_is_matched_by_it() -> None:
    first, second, third = (training(one, one, one, placed=True) for one in "abc")
    assert matched([first, second, third], [third, first, second]) == [(0, 0), (1, 1), (2, 2)]
    assert matched([first, second, third], [third, first]) == [(0, 0), (1, 1)]
    assert matched([first], [second, first]) == [(0, 0)]
    assert matched([], [first]) == matched([first], []) == []


def test_what_has_no_place_is_matched_by_all_that_it_did() -> None:
    first, second = training(update="a"), training(update="b")
    assert matched([first, second], [second, first]) == [(0, 1), (1, 0)]


def test_then_by_how_it_ended() -> None:
    ours = [training(update="a", end=one) for one in "pq"]
    theirs = [training(update="b", end=one) for one in "qp"]
    assert matched(ours, theirs) == [(0, 1), (1, 0)]


def test_then_by_how_it_began() -> None:
    ours = [training(init=one, end="a") for one in "pq"]
    theirs = [training(init=one, end="b") for one in "qp"]
    assert matched(ours, theirs) == [(0, 1), (1, 0)]


def test_then_by_its_framework_and_by_nothing_else() -> None:
    ours = [training("a", "a", "a", framework=one) for one in ("torch", "sklearn", "jax")]
    theirs = [training("b", "b", "b", framework=one) for one in ("sklearn", "torch", "tensorflow")]
    assert matched(ours, theirs) == [(0, 1), (1, 0)]


@pytest.mark.parametrize("whole_first", [False, True])
def test_before_a_run_was_ended_by_what_both_did(whole_first: bool) -> None:
    """As of a search over learning rates, whose trainings all begin alike; the last one is missing."""
    whole = [training(update=one, end=one) for one in "pqr"]
    ended = [training(update=one).through(1) for one in "qp"]
    ours, theirs = (whole, ended) if whole_first else (ended, whole)
    assert matched(ours, theirs) == [(0, 1), (1, 0)]


@pytest.mark.parametrize("whole_first", [False, True])
def test_a_short_training_does_not_take_the_counterpart_of_a_longer_one(whole_first: bool) -> None:
    """Both begin alike, so the one that had only begun fits either."""
    whole = [steps("u", "p"), steps("u", "q")]
    ended = [steps("u").through(2), steps("u", "p").through(2)]
    ours, theirs = (whole, ended) if whole_first else (ended, whole)
    assert matched(ours, theirs) == [(0, 1), (1, 0)]


def test_what_differs_before_a_run_was_ended_is_matched_by_how_it_began() -> None:
    whole = [training(init=one, update=one, end=one) for one in "pq"]
    ended = [training(init=one, update=other).through(1) for one, other in ("qx", "pp")]
    assert matched(ended, whole) == [(0, 1), (1, 0)]


def test_the_better_match_comes_first() -> None:
    """Both began like the second of theirs, and only the second of ours ended like it."""
    ours = [training("i", "a", "a"), training("i", "b", "e")]
    theirs = [training("x", "y", "z"), training("i", "c", "e")]
    assert matched(ours, theirs) == [(0, 0), (1, 1)]


def test_a_part_is_matched_once() -> None:
    same = training()
    assert matched([same, same], [same]) == [(0, 0)]
    assert [pair.rank for pair in pairs(record_of((same, same)), record_of((same, same)))] == [0, 1]


def test_places_and_none_are_matched_as_far_as_possible() -> None:
    placed, unplaced = training("a", "a", "a", placed=True), training("b", "b", "b")
    other = training("b", "b", "b", placed=True)
    assert matched([unplaced, placed], [placed, unplaced]) == [(0, 1), (1, 0)]
    assert matched([unplaced, placed], [placed, other]) == [(0, 1), (1, 0)]
    assert matched([unplaced, other], [placed, unplaced]) == [(0, 1), (1, 0)]
    assert matched([placed, other], [unplaced, placed]) == [(0, 1), (1, 0)]


def test_what_was_shown_without_a_hook_is_matched_by_its_kind() -> None:
    first = [training(placed=True), shown(Stage.STDOUT, "a"), shown(Stage.SAVED, "a")]
    second = [training(placed=True), shown(Stage.ARTIFACT, "b"), shown(Stage.SAVED, "b")]
    assert matched(first, second) == [(0, 0), (2, 2)]
    assert matched(first[1:], second) == [(1, 2)]
    assert matched([], second) == []


@pytest.mark.parametrize(
    "changed", [training(init="x"), training(update="x"), training(end="x"), training(loss=0.25), training(placed=True)]
)
def test_an_identity_changes_with_every_result(changed: Training) -> None:
    assert identity(record_of((changed,))) != identity(record_of((training(),)))
    assert identity(record_of((changed, training()))) != identity(record_of((training(),)))


def test_an_identity_has_the_order_of_what_has_a_place() -> None:
    first, second = training(update="a", placed=True), training(update="b", placed=True)
    assert identity(record_of((first, second))) != identity(record_of((second, first)))
    first, second = training(update="a"), training(update="b")
    assert identity(record_of((first, second))) == identity(record_of((second, first)))


def test_the_order_in_which_steps_were_recorded_does_not_count() -> None:
    made = [
        Training(framework="torch", digests={stage: {step: (f"{step}",) for step in steps} for stage in stages})
        for steps, stages in (((1, 2), (Stage.UPDATE, Stage.STATE)), ((2, 1), (Stage.STATE, Stage.UPDATE)))
    ]
    assert identity(record_of((made[0],))) == identity(record_of((made[1],)))


def test_what_is_a_result() -> None:
    assert {Stage.INIT, Stage.FORWARD, Stage.UPDATE, Stage.STATE, Stage.OUTPUT, *UNHOOKED} == RESULTS
    assert results(training()) == RESULTS
    assert results(training(framework="torch inference")) == RESULTS - {Stage.INIT}


def test_the_end_of_what_recorded_none() -> None:
    losses: dict[int, Number] = {1: 0.5}
    assert end(Training(framework="torch", steps=2, losses=losses)) == ("torch", 2, end(training(loss=0.5))[2], None)
