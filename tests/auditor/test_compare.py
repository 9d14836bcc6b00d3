"""A comparison says where two recordings part, no surer than what was kept of them allows."""

from typing import Any

import msgspec
import pytest

from detaudit.auditor.baseline.recordings import thinned
from detaudit.auditor.compare import compare
from detaudit.errors import ExitCode, NothingToCompareError
from detaudit.model import (
    Change,
    Comparison,
    Difference,
    Likeness,
    Number,
    Recipe,
    Recording,
    RunRecord,
    Stage,
    to_json,
)
from tests.auditor.recorded import outside, recording, trained, weight


def later(first: int, steps: int = 5) -> dict[str, str]:
    """From this step on, weights and losses are other ones."""
    weights = {f"update{step}": "x" for step in range(first, steps + 1)}
    return weights | {f"forward{step}": "x" for step in range(first + 1, steps + 1)}


def test_the_same() -> None:
    found = compare(recording(trained(weights=(weight(),))), recording(trained(weights=(weight(),))), names=("a", "b"))
    assert found.verdict is Likeness.SAME
    assert (found.differs, found.equal_until, found.cause, found.next_steps) == (None, None, None, ())
    assert (found.environment, found.weights, found.weights_compared, found.warnings) == ((), (), 1, ())
    assert (found.steps_compared, found.stages) == (
        5,
        (Stage.INIT, Stage.RNG, Stage.BATCH, Stage.FORWARD, Stage.UPDATE),
    )
    assert {pair.distance for pair in found.curve} == {0.0}
    assert (found.a.name, found.b.name, found.a.ranks[0].digest) == ("a", "b", "end")


def test_where_they_part() -> None:
    b = recording(trained(end="x", change=later(3)))
    found = compare(recording(), b, command=("detaudit", "compare", "a", "b c", "--format", "markdown"))
    assert found.verdict is Likeness.DIFFERENT
    assert found.differs == Difference(rank=0, step=3, stage=Stage.UPDATE)
    assert found.equal_until == 2
    assert found.cause is not None
    assert "the updated weights differ while rng and batch and forward agree" in found.cause
    assert [step.command for step in found.next_steps] == ["detaudit compare a 'b c' --format json"]


def test_what_was_kept_of_a_baseline_bounds_the_cause() -> None:
    whole, other = recording(trained(200)), recording(trained(200, end="x", change=later(150, 200)))
    found = compare(thinned(whole), other)
    assert (found.differs, found.equal_until) == (Difference(rank=0, step=152, stage=Stage.FORWARD), 148)
    assert found.cause == "of the steps between 148 and 152 nothing was kept on both sides: it may come from there"
    assert compare(whole, other).differs == Difference(rank=0, step=150, stage=Stage.UPDATE)


def test_only_what_was_kept_at_that_step_is_said_to_agree() -> None:
    digests = {stage: dict(steps) for stage, steps in trained().digests.items()}
    del digests[Stage.BATCH][3]
    found = compare(recording(trained(digests=digests)), recording(trained(end="x", change={"forward3": "x"})))
    assert found.cause is not None
    assert found.cause.startswith("the loss differs while rng agrees: the data, ")


def test_a_change_after_the_last_step() -> None:
    found = compare(recording(), recording(trained(end="x")))
    assert (found.differs, found.equal_until) == (Difference(rank=0, step=5, stage=Stage.UPDATE), 5)
    assert "changed after the last one" in (found.cause or "")


def test_one_side_goes_on() -> None:
    found = compare(recording(trained(3)), recording(trained(5)))
    assert (found.differs, found.cause) == (Difference(rank=0, step=4, stage=Stage.STEPS), None)
    assert [pair.step for pair in found.curve] == [1, 2, 3]


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [(1.0, 0.75, 0.25), ("nan", 1.0, None), ("inf", "inf", None), (None, 1.0, None), (1e308, -1e308, None), (2, 1, 1)],
)
def test_how_far_losses_are_apart(a: Number, b: Number, distance: float | None) -> None:
    found = compare(recording(trained(losses={3: a, 9: 1.0})), recording(trained(losses={2: 1.0, 3: b})))
    assert [(pair.rank, pair.step, pair.a, pair.b, pair.distance) for pair in found.curve] == [(0, 3, a, b, distance)]
    assert msgspec.json.decode(to_json(found), type=Comparison).curve == found.curve


def test_weights_that_ended_unlike() -> None:
    shared = weight("same", 1.0)
    a = trained(weights=(shared, weight("a", 1.0), weight("c", "nan", shape=())))
    b = trained(weights=(shared, weight("b", 1.5), weight("d", 2.0, shape=())), end="x")
    found = compare(recording(a), recording(b))
    assert [(one.place, one.shape, one.a, one.b) for one in found.weights] == [
        (1, (2, 3), 1.0, 1.5),
        (2, (), "nan", 2.0),
    ]
    assert found.weights_compared == 3


def test_weights_of_unlike_shape_are_not_compared() -> None:
    a = trained(weights=(weight("a"), weight("b", shape=(4,))))
    found = compare(recording(a), recording(trained(weights=(weight("c"), weight("d", shape=(5,))), end="x")))
    assert [one.place for one in found.weights] == [0]
    assert found.weights_compared == 1
    assert "rank 0, weight 1 is torch.float32 of shape [4] on one side and torch.float32 of shape [5] on the other" in (
        found.warnings
    )
    found = compare(recording(a), recording(trained(weights=(weight("c"),), end="x")))
    assert (found.weights, found.weights_compared) == ((), 0)
    assert "rank 0 has 2 tensors of weights on one side and 1 on the other" in found.warnings


def test_environments() -> None:
    a = recording(environment={"torch": "2.1", "cpus": "2", "TZ": "UTC"})
    b = recording(environment={"torch": "2.2", "cpus": "2", "OMP_NUM_THREADS": "1"})
    found = compare(a, b)
    assert found.verdict is Likeness.SAME
    assert found.environment == (
        Change(name="OMP_NUM_THREADS", a=None, b="1"),
        Change(name="TZ", a="UTC", b=None),
        Change(name="torch", a="2.1", b="2.2"),
    )


def recipe(*flags: str, seed: int = 0) -> dict[str, Any]:
    return {"recipe": Recipe(name="r", seed=seed, flags=flags)}


def test_unlike_recipes_are_told() -> None:
    seeds = recording(**recipe("torch-seed"))
    assert any("unlike recipes" in text for text in compare(recording(), seeds).warnings)
    assert any("unlike recipes" in text for text in compare(recording(**recipe("torch-seed", seed=1)), seeds).warnings)
    assert compare(recording(**recipe(seed=1)), recording()).warnings == ()


def test_stages_of_one_side_alone_are_told() -> None:
    digests = dict(trained().digests)
    del digests[Stage.BATCH]
    found = compare(recording(trained(digests=digests)), recording(), names=("a", "b"))
    assert found.verdict is Likeness.SAME
    assert Stage.BATCH not in found.stages
    assert found.warnings == ("recorded in b alone, and not compared: batch",)


def test_doubts_are_told() -> None:
    found = compare(recording(trained(sampled=True)), recording(), names=("a", "b"), warnings=("of a", "of a"))
    assert found.warnings[0] == "of a"
    assert len(found.warnings) == 2
    assert "a: its weights are large" in found.warnings[1]
    assert "one recording" in compare(recording(), recording(), names=("a", "a")).warnings[0]
    other = compare(recording(), recording(trained(framework="jax")))
    assert (other.verdict, other.cause) == (Likeness.DIFFERENT, None)
    assert any("unlike frameworks" in text for text in other.warnings)


def test_unlike_numbers_of_ranks() -> None:
    found = compare(recording(), recording(trained(), trained()))
    assert (found.differs, found.cause) == (Difference(rank=1, step=0, stage=Stage.STEPS), None)
    assert "unlike numbers of ranks: 1 and 2" in found.warnings


def test_what_only_one_side_shows_is_left_out_and_told() -> None:
    found = compare(recording(trained(), outside(Stage.STDOUT)), recording())
    assert found.verdict is Likeness.SAME
    assert found.warnings == ("left out, because one side has none: printed losses (--loss-pattern)",)


def test_files_alone() -> None:
    a, b = (recording(outside(Stage.ARTIFACT, digest)) for digest in "xy")
    assert compare(a, a).verdict is Likeness.SAME
    found = compare(a, b)
    assert found.differs == Difference(rank=0, step=0, stage=Stage.ARTIFACT, site="model.bin")
    assert found.cause == "a file that the script wrote differs: what led to it was not seen"


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (recording(trained(end=None)), recording(), "no weights of A were seen"),
        (recording(trained(end=None)), recording(trained(end=None)), "no weights of A and B were seen"),
        (recording(outside(Stage.STDOUT)), recording(outside(Stage.STDOUT)), "losses alone are no evidence"),
        (recording(outside(Stage.STDOUT)), recording(), "stdout on one side, torch on the other"),
    ],
)
def test_what_cannot_be_found_to_match_is_no_match(a: Recording, b: Recording, words: str) -> None:
    with pytest.raises(NothingToCompareError, match=words) as caught:
        compare(a, b)
    assert caught.value.exit_code is ExitCode.INCONCLUSIVE


def test_nothing_recorded_is_no_match() -> None:
    nothing = msgspec.structs.replace(recording(), run=RunRecord())
    with pytest.raises(NothingToCompareError, match="nothing on one side"):
        compare(nothing, nothing)


def test_losses_that_differ_need_no_weights() -> None:
    found = compare(recording(trained(end=None)), recording(trained(change={"forward2": "x"})))
    assert found.differs == Difference(rank=0, step=2, stage=Stage.FORWARD)
