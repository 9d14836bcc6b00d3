"""A comparison says where two recordings diverge, no surer than what they kept allows."""

from typing import Any

import msgspec
import pytest

from detaudit.baseline import thinned
from detaudit.compare import compare
from detaudit.errors import ExitCode, NothingToCompareError
from detaudit.model import (
    AppliedRecipe,
    Change,
    Comparison,
    ComparisonVerdict,
    Difference,
    Explanation,
    LikelyCause,
    Number,
    Purpose,
    Recording,
    RunRecord,
    Stage,
    to_json,
)
from detaudit.model.warnings import (
    FrameworksDiffer,
    PartNotShared,
    RanksDiffer,
    RecipesDiffer,
    RunsDiffer,
    SameRecording,
    StagesNotShared,
    TensorCountsDiffer,
    TensorLayoutsDiffer,
    WeightsSampled,
)
from tests.recorded import outside, recording, trained, weight


def later(first: int, steps: int = 5) -> dict[str, str]:
    """From this step on, weights and losses are different."""
    weights = {f"update{step}": "x" for step in range(first, steps + 1)}
    return weights | {f"forward{step}": "x" for step in range(first + 1, steps + 1)}


def test_identical_recordings() -> None:
    found = compare(recording(trained(weights=(weight(),))), recording(trained(weights=(weight(),))), names=("a", "b"))
    assert found.verdict is ComparisonVerdict.IDENTICAL
    assert (found.first_difference, found.last_equal_step, found.explanation) == (None, None, None)
    assert found.next_steps == ()
    assert (found.environment_changes, found.differing_weights, found.weights_compared, found.warnings) == (
        (),
        (),
        1,
        (),
    )
    assert (found.steps_compared, found.stages) == (
        5,
        (Stage.INIT, Stage.RNG, Stage.BATCH, Stage.FORWARD, Stage.UPDATE),
    )
    assert {pair.distance for pair in found.losses} == {0.0}
    assert (found.a.name, found.b.name, found.a.ranks[0].digest) == ("a", "b", "end")


def test_where_they_diverge() -> None:
    b = recording(trained(end="x", change=later(3)))
    found = compare(recording(), b, command=("detaudit", "compare", "a", "b c", "--format", "markdown"))
    assert found.verdict is ComparisonVerdict.DIFFERENT
    assert found.first_difference == Difference(rank=0, step=3, stage=Stage.UPDATE)
    assert found.last_equal_step == 2
    assert found.explanation == Explanation(
        matching=(Stage.RNG, Stage.BATCH, Stage.FORWARD),
        likely=(LikelyCause.BACKWARD_KERNEL, LikelyCause.OPTIMIZER, LikelyCause.RACE),
    )
    assert [(step.command, step.purpose) for step in found.next_steps] == [
        ("detaudit compare a 'b c' --format json", Purpose.PRINT_ALL_LOSSES)
    ]


def test_the_steps_that_a_baseline_keeps_limit_the_explanation() -> None:
    whole, other = recording(trained(200)), recording(trained(200, end="x", change=later(150, 200)))
    found = compare(thinned(whole), other)
    assert (found.first_difference, found.last_equal_step) == (Difference(rank=0, step=160, stage=Stage.FORWARD), 128)
    assert found.explanation == Explanation(gap=(128, 160))
    assert compare(whole, other).first_difference == Difference(rank=0, step=150, stage=Stage.UPDATE)


def test_only_stages_that_both_recorded_at_that_step_match() -> None:
    digests = {stage: dict(steps) for stage, steps in trained().digests.items()}
    del digests[Stage.BATCH][3]
    found = compare(recording(trained(digests=digests)), recording(trained(end="x", change={"forward3": "x"})))
    likely = (LikelyCause.DATA, LikelyCause.FORWARD_KERNEL, LikelyCause.UNINITIALIZED_MEMORY)
    assert found.explanation == Explanation(matching=(Stage.RNG,), likely=likely)


def test_a_change_after_the_last_step() -> None:
    found = compare(recording(), recording(trained(end="x")))
    at_end = Difference(rank=0, step=5, stage=Stage.UPDATE, at_end=True)
    assert (found.first_difference, found.last_equal_step) == (at_end, 5)
    assert found.explanation == Explanation(likely=(LikelyCause.AFTER_THE_LAST_STEP,))


def test_one_side_has_more_steps() -> None:
    found = compare(recording(trained(3)), recording(trained(5)))
    assert (found.first_difference, found.explanation) == (Difference(rank=0, step=4, stage=Stage.STEPS), None)
    assert [pair.step for pair in found.losses] == [1, 2, 3]


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [(1.0, 0.75, 0.25), ("nan", 1.0, None), ("inf", "inf", None), (None, 1.0, None), (1e308, -1e308, None), (2, 1, 1)],
)
def test_the_distance_of_losses(a: Number, b: Number, distance: float | None) -> None:
    found = compare(recording(trained(losses={3: a, 9: 1.0})), recording(trained(losses={2: 1.0, 3: b})))
    assert [(pair.rank, pair.step, pair.a, pair.b, pair.distance) for pair in found.losses] == [(0, 3, a, b, distance)]
    assert msgspec.json.decode(to_json(found), type=Comparison).losses == found.losses


def test_final_weights_that_differ() -> None:
    shared = weight("same", 1.0)
    a = trained(weights=(shared, weight("a", 1.0), weight("c", "nan", shape=())))
    b = trained(weights=(shared, weight("b", 1.5), weight("d", 2.0, shape=())), end="x")
    found = compare(recording(a), recording(b))
    assert [(one.place, one.shape, one.a, one.b) for one in found.differing_weights] == [
        (1, (2, 3), 1.0, 1.5),
        (2, (), "nan", 2.0),
    ]
    assert found.weights_compared == 3


def test_weights_of_different_shapes_are_not_compared() -> None:
    a = trained(weights=(weight("a"), weight("b", shape=(4,))))
    found = compare(recording(a), recording(trained(weights=(weight("c"), weight("d", shape=(5,))), end="x")))
    assert [one.place for one in found.differing_weights] == [0]
    assert found.weights_compared == 1
    layouts = [("torch.float32", (4,)), ("torch.float32", (5,))]
    assert found.warnings == (TensorLayoutsDiffer(rank=0, place=1, a=layouts[0], b=layouts[1]),)
    found = compare(recording(a), recording(trained(weights=(weight("c"),), end="x")))
    assert (found.differing_weights, found.weights_compared) == ((), 0)
    assert found.warnings == (TensorCountsDiffer(rank=0, a=2, b=1),)


def test_environments() -> None:
    a = recording(environment={"torch": "2.1", "cpus": "2", "TZ": "UTC"})
    b = recording(environment={"torch": "2.2", "cpus": "2", "OMP_NUM_THREADS": "1"})
    found = compare(a, b)
    assert found.verdict is ComparisonVerdict.IDENTICAL
    assert found.environment_changes == (
        Change(name="OMP_NUM_THREADS", a=None, b="1"),
        Change(name="TZ", a="UTC", b=None),
        Change(name="torch", a="2.1", b="2.2"),
    )


def recipe(*flags: str, seed: int = 0) -> dict[str, Any]:
    return {"recipe": AppliedRecipe(name="r", seed=seed, flags=flags)}


def test_different_recipes_are_reported() -> None:
    seeds = recording(**recipe("torch-seed"))
    assert compare(recording(), seeds).warnings == (RecipesDiffer(a="none", b="r"),)
    assert compare(recording(**recipe("torch-seed", seed=1)), seeds).warnings == (RecipesDiffer(a="r", b="r"),)
    assert compare(recording(**recipe(seed=1)), recording()).warnings == ()


def test_stages_of_one_side_alone_are_reported() -> None:
    digests = dict(trained().digests)
    del digests[Stage.BATCH]
    found = compare(recording(trained(digests=digests)), recording(), names=("a", "b"))
    assert found.verdict is ComparisonVerdict.IDENTICAL
    assert Stage.BATCH not in found.stages
    assert found.warnings == (StagesNotShared(recording="b", stages=(Stage.BATCH,)),)


def test_doubts_are_reported() -> None:
    doubt = RunsDiffer(recording="a")
    found = compare(recording(trained(sampled=True)), recording(), names=("a", "b"), warnings=(doubt, doubt))
    assert found.warnings == (doubt, WeightsSampled(recording="a"))
    assert compare(recording(), recording(), names=("a", "a")).warnings == (SameRecording(),)
    other = compare(recording(), recording(trained(framework="jax")))
    assert (other.verdict, other.explanation) == (ComparisonVerdict.DIFFERENT, None)
    assert other.warnings == (FrameworksDiffer(rank=0, a="torch", b="jax"),)


def test_different_numbers_of_ranks() -> None:
    found = compare(recording(), recording(trained(), trained()))
    assert (found.first_difference, found.explanation) == (Difference(rank=1, step=0, stage=Stage.STEPS), None)
    assert found.warnings == (RanksDiffer(a=1, b=2),)


def test_what_only_one_side_has_is_not_compared_and_reported() -> None:
    found = compare(recording(trained(), outside(Stage.STDOUT)), recording())
    assert found.verdict is ComparisonVerdict.IDENTICAL
    assert found.warnings == (PartNotShared(part=Stage.STDOUT),)


def test_files_alone() -> None:
    a, b = (recording(outside(Stage.ARTIFACT, digest)) for digest in "xy")
    assert compare(a, a).verdict is ComparisonVerdict.IDENTICAL
    found = compare(a, b)
    assert found.first_difference == Difference(rank=0, step=0, stage=Stage.ARTIFACT, site="model.bin")
    assert found.explanation == Explanation(likely=(LikelyCause.NOT_RECORDED,))


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (recording(trained(end=None)), recording(), "the losses match, but no weights of A were recorded"),
        (recording(trained(end=None)), recording(trained(end=None)), "no weights of A and B were recorded"),
        (
            recording(outside(Stage.STDOUT)),
            recording(outside(Stage.STDOUT)),
            "matching losses prove nothing on their own",
        ),
        (recording(outside(Stage.STDOUT)), recording(), "nothing in common: stdout on one, torch on the other"),
    ],
)
def test_too_little_to_compare_is_never_a_match(a: Recording, b: Recording, words: str) -> None:
    with pytest.raises(NothingToCompareError, match=words) as caught:
        compare(a, b)
    assert caught.value.exit_code is ExitCode.INCONCLUSIVE


def test_nothing_recorded_is_never_a_match() -> None:
    nothing = msgspec.structs.replace(recording(), run=RunRecord())
    with pytest.raises(NothingToCompareError, match="nothing in common: nothing on one, nothing on the other"):
        compare(nothing, nothing)


def test_losses_that_differ_need_no_weights() -> None:
    found = compare(recording(trained(end=None)), recording(trained(change={"forward2": "x"})))
    assert found.first_difference == Difference(rank=0, step=2, stage=Stage.FORWARD)
