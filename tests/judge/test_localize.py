"""The explanation of a first difference is no surer than what was recorded allows."""

import pytest

from detaudit.judge.group import explanation, of_difference, with_lines
from detaudit.model import Difference, Explanation, LikelyCause, Source, SourceKind, Stage

ALL = [stage for stage in Stage if stage not in (Stage.STEPS, Stage.HYPERPARAMETERS)]
TRAINED = [Stage.INIT, Stage.RNG, Stage.BATCH, Stage.FORWARD, Stage.UPDATE]
FORWARD = (LikelyCause.LOSS_ARGUMENTS, LikelyCause.FORWARD_KERNEL, LikelyCause.UNINITIALIZED_MEMORY)
UPDATE = (LikelyCause.OPTIMIZER, LikelyCause.RACE)


@pytest.mark.parametrize(
    ("stage", "recorded", "matching", "likely"),
    [
        (Stage.INIT, ALL, (), (LikelyCause.SEEDS, LikelyCause.INITIALIZATION_ORDER)),
        (Stage.RNG, ALL, (), (LikelyCause.SEEDING,)),
        (Stage.BATCH, ALL, (Stage.RNG,), (LikelyCause.DATA_PIPELINE,)),
        (Stage.FORWARD, ALL, (Stage.RNG, Stage.BATCH), FORWARD),
        (Stage.FORWARD, [Stage.FORWARD], (), (LikelyCause.DATA, *FORWARD[1:])),
        (Stage.BACKWARD, ALL, (Stage.RNG, Stage.BATCH, Stage.FORWARD), (LikelyCause.BACKWARD_KERNEL,)),
        (Stage.REDUCE, ALL, (Stage.RNG, Stage.BATCH, Stage.FORWARD, Stage.BACKWARD), (LikelyCause.COLLECTIVE,)),
        (Stage.UPDATE, ALL, (Stage.RNG, Stage.BATCH, Stage.FORWARD, Stage.BACKWARD, Stage.REDUCE), UPDATE),
        (Stage.UPDATE, [Stage.FORWARD, Stage.UPDATE], (Stage.FORWARD,), (LikelyCause.BACKWARD_KERNEL, *UPDATE)),
        (Stage.UPDATE, [Stage.UPDATE], (), (LikelyCause.DATA, *UPDATE)),
        (Stage.HYPERPARAMETERS, ALL, tuple(ALL[1:6]), (LikelyCause.HYPERPARAMETERS,)),
        (Stage.STDOUT, [Stage.STDOUT], (), (LikelyCause.NOT_RECORDED,)),
        (Stage.ARTIFACT, [Stage.STDOUT, Stage.ARTIFACT], (Stage.STDOUT,), (LikelyCause.NOT_RECORDED,)),
        (Stage.RETURNED, [*TRAINED, Stage.RETURNED], tuple(TRAINED[1:]), (LikelyCause.OUTSIDE_THE_WEIGHTS,)),
        (Stage.STEPS, ALL, (), (LikelyCause.CONTROL_FLOW,)),
    ],
)
def test_explanations(
    stage: Stage, recorded: list[Stage], matching: tuple[Stage, ...], likely: tuple[LikelyCause, ...]
) -> None:
    assert explanation(stage, recorded) == Explanation(matching=matching, likely=likely)


def test_a_fit_that_differs_accuses_no_kernel() -> None:
    found = Difference(rank=1, step=1, stage=Stage.UPDATE, site="PCA.fit")
    likely = (LikelyCause.RANDOM_STATE, LikelyCause.THREADS)
    assert of_difference(found, TRAINED) == Explanation(matching=(Stage.RNG, Stage.BATCH), likely=likely)


@pytest.mark.parametrize(
    ("kind", "likely", "expected"),
    [
        (SourceKind.UNSEEDED, FORWARD, (LikelyCause.SEEDS, *FORWARD)),
        (SourceKind.CLOCK, UPDATE, (LikelyCause.SEEDS, *UPDATE)),
        (SourceKind.ENTROPY, (LikelyCause.BACKWARD_KERNEL,), (LikelyCause.SEEDS, LikelyCause.BACKWARD_KERNEL)),
        (SourceKind.SET_ORDER, FORWARD, FORWARD),
        (SourceKind.UNSEEDED, (LikelyCause.DATA_PIPELINE,), (LikelyCause.DATA_PIPELINE,)),
        (SourceKind.UNSEEDED, (LikelyCause.DATA, *FORWARD[1:]), (LikelyCause.DATA, *FORWARD[1:])),
        (SourceKind.SET_ORDER, (LikelyCause.NOT_RECORDED,), ()),
    ],
)
def test_a_line_that_draws_without_a_seed_comes_before_what_computes(
    kind: SourceKind, likely: tuple[LikelyCause, ...], expected: tuple[LikelyCause, ...]
) -> None:
    found = [Source(file="train.py", line=7, kind=kind, call="random.random")]
    assert with_lines(Explanation(likely=likely), found) == Explanation(likely=expected)


def test_a_uuid_is_the_name_of_something_and_no_seed() -> None:
    found = [Source(file="train.py", line=7, kind=SourceKind.ENTROPY, call="uuid.uuid4")]
    assert with_lines(Explanation(likely=UPDATE), found) == Explanation(likely=UPDATE)
