"""Recordings: what is kept of a run, and where two first differ, even if each side has steps of its own."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.baseline import KEPT_STEPS, recording_of, thinned
from detaudit.judge import comparer
from detaudit.model import Artifact, Difference, Recording, Run, Stage, Status, Training, record_of
from tests.recorded import RECIPE, STAGES, outside, recording, trained

STEPS = st.integers(1, 400)


def test_steps_before_the_first_one_are_kept_too() -> None:
    negative = Training(framework="torch", digests={Stage.UPDATE: {-3: ("a",)}})
    assert thinned(recording(negative)).run == record_of((negative,))


def at(step: int, stage: Stage, rank: int = 0, *, end: bool = False) -> Difference:
    return Difference(rank=rank, step=step, stage=stage, at_end=end)


def same(a: Recording, b: Recording) -> bool:
    return comparer.same(a.run, b.run)


def first_difference(a: Recording, b: Recording) -> Difference | None:
    return comparer.first_difference(a.run, b.run, shared=True)


def last_equal_step(a: Recording, b: Recording, difference: Difference) -> int | None:
    return comparer.last_equal_step(a.run, b.run, difference)


def run_of(*parts: Training, artifacts: tuple[Artifact, ...] = ()) -> Run:
    ranks = record_of(parts).ranks
    return Run(id=1, status=Status.OK, exit_code=0, wall_s=1.0, steps=1, ranks=ranks, artifacts=artifacts)


def test_files_are_one_digest_each() -> None:
    parts = Training(framework="artifact", digests={Stage.ARTIFACT: {0: ("p a.npz: x", "q a.npz: y", "r b.bin")}})
    files = tuple(Artifact(path=path, by="bytes", digest=digest) for path, digest in (("a.npz", "A"), ("b.bin", "B")))
    found = recording_of((), RECIPE, {}, run_of(parts, artifacts=files), record_of((trained(), parts)))
    assert found.run.trainings == (trained(),)
    assert found.run.unhooked[0].digests == {Stage.ARTIFACT: {0: ("A a.npz", "B b.bin")}}


def test_a_recording_survives_json() -> None:
    made = recording_of(("detaudit",), RECIPE, {"a": "b"}, run_of(trained()), record_of((trained(weights=()),)))
    assert msgspec.json.decode(msgspec.json.encode(made), type=Recording) == made


@given(STEPS)
def test_a_thinned_recording_keeps_few_steps_and_changes_none(steps: int) -> None:
    whole = recording(trained(steps))
    thin = thinned(whole)
    for stage in STAGES:
        kept = thin.run.trainings[0].digests[stage]
        assert kept.items() <= whole.run.trainings[0].digests[stage].items()
        powers = (2**n for n in range(9) if 2**n <= steps)
        assert {1, steps, *(() if stage is Stage.RNG else powers)} <= kept.keys()
        assert len(kept) <= KEPT_STEPS + 10
    assert thin.run.trainings[0].digests[Stage.INIT] == {0: ("0 init",)}
    assert thin.run.trainings[0].losses.keys() == thin.run.trainings[0].digests[Stage.UPDATE].keys()
    assert thinned(thin) == thin
    assert same(whole, thin)
    assert same(thin, whole)


@given(STEPS, st.data())
def test_the_first_difference_is_found_between_kept_steps(steps: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, steps))
    change = {f"{Stage.UPDATE}{step}": "x" for step in range(first, steps + 1)}
    a, b = recording(trained(steps)), recording(trained(steps, end="other", change=change))
    assert first_difference(a, b) == first_difference(b, a) == at(first, Stage.UPDATE)
    assert last_equal_step(a, b, at(first, Stage.UPDATE)) == (first - 1 or None)
    thin = thinned(a)
    found = first_difference(thin, b)
    assert found is not None
    assert (found.step >= first, found.stage) == (True, Stage.UPDATE)
    before = last_equal_step(thin, b, found)
    assert before is None or before < first
    kept = thin.run.trainings[0].digests[Stage.UPDATE]
    assert not [step for step in kept if (before or 0) < step < found.step]


@given(st.integers(1, 5), st.sampled_from(STAGES))
def test_the_first_stage_of_a_step_is_named(step: int, stage: Stage) -> None:
    change = {f"{stage}{step}": "x", "update5": "x"}
    assert first_difference(recording(), recording(trained(end="x", change=change))) == at(step, stage)


def test_equal_recordings_do_not_differ() -> None:
    assert same(recording(), recording())
    assert first_difference(recording(), recording()) is None


def test_what_only_explains_is_no_difference() -> None:
    other = recording(trained(change={"rng2": "x", "batch3": "x"}))
    assert same(recording(), other)
    assert first_difference(recording(), other) is None


@pytest.mark.parametrize("fields", [{"devices": ("cuda:0",)}, {"sum": 2.5000000000000004}])
def test_where_weights_live_and_how_they_were_added_up_is_no_difference(fields: dict[str, Any]) -> None:
    assert same(recording(), recording(trained(**fields)))


@pytest.mark.parametrize("fields", [{"end": "x"}, {"loss": 0.30000000000000004}, {"framework": "jax"}])
def test_what_is_a_difference_at_the_end_alone(fields: dict[str, Any]) -> None:
    found = first_difference(recording(), recording(trained(**fields)))
    assert found == at(5, Stage.UPDATE, end=True)
    assert last_equal_step(recording(), recording(trained(**fields)), found) == 5


def test_a_negative_zero_is_a_different_loss() -> None:
    assert not same(recording(trained(loss=0.0)), recording(trained(loss=-0.0)))
    assert same(recording(trained(loss="nan")), recording(trained(loss="nan")))


def test_weights_that_were_digested_rarely() -> None:
    rare = {stage: dict(steps) for stage, steps in trained().digests.items()}
    rare[Stage.UPDATE] = {step: digest for step, digest in rare[Stage.UPDATE].items() if step in (1, 2, 4)}
    a, b = recording(trained(digests=rare)), recording(trained(digests=rare, end="x"))
    assert first_difference(a, b) == at(5, Stage.UPDATE)
    assert last_equal_step(a, b, at(5, Stage.UPDATE)) == 4


def test_one_side_ends_earlier() -> None:
    a, b = recording(trained(3, loss=0.1)), recording(trained(5, loss=0.1))
    assert first_difference(a, b) == at(4, Stage.STEPS)
    assert last_equal_step(a, b, at(4, Stage.STEPS)) == 3


def test_nothing_before_the_first_step_is_equal_to_a_later_one() -> None:
    b = recording(trained(change={"init0": "x"}))
    assert first_difference(recording(), b) == at(0, Stage.INIT)
    assert last_equal_step(recording(), b, at(0, Stage.INIT)) is None


def two(second: Training) -> Recording:
    return recording(trained(), second)


def test_the_rank_that_differs_first_is_named() -> None:
    a = two(trained())
    b = recording(trained(change={"update4": "x"}), trained(change={"forward3": "x"}))
    assert first_difference(a, b) == at(3, Stage.FORWARD, rank=1)
    assert last_equal_step(a, b, at(3, Stage.FORWARD, rank=1)) == 2


def test_a_rank_that_is_missing() -> None:
    a, b = two(trained()), recording()
    assert first_difference(a, b) == first_difference(b, a) == at(0, Stage.STEPS, rank=1)
    assert last_equal_step(a, b, at(0, Stage.STEPS, rank=1)) is None


def test_printed_losses_and_files_are_compared_with_their_own_kind() -> None:
    a = recording(trained(), outside(Stage.STDOUT), outside(Stage.ARTIFACT))
    assert same(a, recording(trained(), outside(Stage.ARTIFACT), outside(Stage.STDOUT)))
    b = recording(trained(), outside(Stage.STDOUT, "y"), outside(Stage.ARTIFACT, "y"))
    assert first_difference(a, b) == at(1, Stage.STDOUT, rank=1)
    later = recording(trained(change={"update5": "x"}), *b.run.unhooked)
    assert first_difference(a, later) == at(5, Stage.UPDATE)
    file = Difference(rank=2, step=0, stage=Stage.ARTIFACT, site="model.bin")
    assert first_difference(a, recording(*a.run.parts[:2], b.run.parts[2])) == file


def test_what_one_side_does_not_have_is_never_a_match() -> None:
    a = recording(trained(), outside(Stage.STDOUT))
    assert not same(a, recording())
    assert first_difference(a, recording()) == at(0, Stage.STEPS, rank=1)
    assert last_equal_step(a, recording(), at(0, Stage.STEPS, rank=1)) is None
