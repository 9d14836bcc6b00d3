"""The sentences of a comparison: what differs first, of which rank, and the last equal step."""

from typing import Any

import msgspec
import pytest

from detaudit.model import Change, Comparison, Difference, LossPair, Stage
from detaudit.report import checks
from tests.report.comparisons import COMPARISONS

DIFFERENT, RANKS = COMPARISONS["compared-different"], COMPARISONS["compared-ranks"]


def sentence(found: Comparison, step: int, stage: Stage, *, rank: int = 0, **changed: Any) -> str:
    first = Difference(rank=rank, step=step, stage=stage, site="model.bin", at_end=step == 40)
    return checks.comparison_sentence(msgspec.structs.replace(found, first_difference=first, **changed))


@pytest.mark.parametrize(
    ("step", "stage", "until", "expected"),
    [
        (8, Stage.UPDATE, 4, "the weights first differ at step 8 (last equal: step 4)"),
        (1, Stage.FORWARD, None, "the loss first differs at step 1"),
        (3, Stage.BATCH, 2, "the model's inputs first differ at step 3 (last equal: step 2)"),
        (0, Stage.INIT, None, "the weights differ before the first step"),
        (5, Stage.INIT, None, "the weights differ before step 5"),
        (40, Stage.UPDATE, 40, "the final weights or loss differ (last equal: step 40)"),
        (40, Stage.STATE, 40, "the final state of a model differs (last equal: step 40)"),
        (9, Stage.STATE, 8, "the buffers first differ at step 9 (last equal: step 8)"),
        (7, Stage.STDOUT, 6, "the printed losses first differ at step 7 (last equal: step 6)"),
        (0, Stage.ARTIFACT, None, "the file model.bin differs"),
        (41, Stage.STEPS, 40, "A ended after step 40, B after step 40 (last equal: step 40)"),
        (0, Stage.STEPS, None, "A has 1 rank, B has 1"),
    ],
)
def test_what_differs_first(step: int, stage: Stage, until: int | None, expected: str) -> None:
    assert sentence(DIFFERENT, step, stage, last_equal_step=until) == expected


def test_the_rank_is_named_if_there_are_several() -> None:
    assert (
        sentence(RANKS, 3, Stage.UPDATE, rank=1, last_equal_step=2)
        == "the weights of rank 1 first differ at step 3 (last equal: step 2)"
    )
    assert checks.comparison_sentence(RANKS) == "rank 1: A ended after step 40, B after step 41 (last equal: step 40)"


def test_the_losses_are_shown_where_they_diverge_and_then_ever_more_rarely() -> None:
    assert [row[0] for row in checks.losses(DIFFERENT).rows] == ["7", "8", "9", "10", "11", "16", "32", "40"]
    assert checks.losses(DIFFERENT).rows[1] == ["8", "0.125", "0.125", "0"]
    assert checks.losses(DIFFERENT).rows[-1][2:] == ["nan", "-"]
    pairs = tuple(LossPair(rank=0, step=step, a=0.0, b=1.0, distance=1.0) for step in range(1, 100_000))
    assert len(checks.losses(msgspec.structs.replace(DIFFERENT, losses=pairs)).rows) <= 20


def test_the_losses_of_the_rank_that_differs_are_shown() -> None:
    pairs = tuple(LossPair(rank=rank, step=1, a=0.0, b=float(rank), distance=rank) for rank in (0, 1, 2))
    (row,) = checks.losses(msgspec.structs.replace(RANKS, losses=pairs)).rows
    assert row == ["1", "0", "1", "1"]
    (row,) = checks.losses(msgspec.structs.replace(DIFFERENT, losses=pairs)).rows  # the losses of its rank 0 match
    assert row == ["1", "0", "1", "1"]


def test_equal_losses_are_one_line() -> None:
    assert checks.losses(RANKS).rows == []
    assert checks.losses_line(RANKS) == "the losses match at all 2 steps recorded on both sides"
    assert checks.losses_line(DIFFERENT) == checks.losses_line(COMPARISONS["compared-identical"]) == ""


def test_a_comparison_of_the_final_state_only() -> None:
    found = msgspec.structs.replace(COMPARISONS["compared-identical"], steps_compared=0, stages=())
    assert checks.comparison_sentence(found) == "bit-identical at the end; no step is recorded on both sides"
    assert checks.stages_line(found) == "compared: final state only"


def test_commands_are_shown_if_they_differ() -> None:
    other = msgspec.structs.replace(DIFFERENT.b, command=("train.py", "--name", "my model"))
    lines = checks.heading(msgspec.structs.replace(DIFFERENT, b=other))
    assert lines[1] == "B: after (recipe seeds: 2 flags, seed 7), recorded by: train.py --name 'my model'"
    assert "train.py" not in checks.heading(DIFFERENT)[1]


def test_a_long_list_of_changes_is_cut() -> None:
    changes = tuple(Change(name=f"p{n}", a="1", b=None) for n in range(checks.MOST_COMPARED_CHANGES + 3))
    lines = checks.environment_lines(msgspec.structs.replace(DIFFERENT, environment_changes=changes))
    assert (lines[0], lines[-1]) == ("p0: 1 → none", "and 3 more (--format json)")
