"""The sentences of a comparison: what differs first, of which rank, up to where both are equal."""

from typing import Any

import msgspec
import pytest

from detaudit.model import Change, Comparison, Difference, LossPair, Stage
from detaudit.report import comparison
from tests.report.comparisons import COMPARISONS

DIFFERENT, RANKS = COMPARISONS["compared-different"], COMPARISONS["compared-ranks"]


def told(found: Comparison, step: int, stage: Stage, *, rank: int = 0, **changed: Any) -> str:
    differs = Difference(rank=rank, step=step, stage=stage, site="model.bin")
    return comparison.sentence(msgspec.structs.replace(found, differs=differs, **changed))


@pytest.mark.parametrize(
    ("step", "stage", "until", "expected"),
    [
        (8, Stage.UPDATE, 4, "the weights first differ at step 8 (equal at step 4)"),
        (1, Stage.FORWARD, None, "the loss first differs at step 1"),
        (3, Stage.BATCH, 2, "the model's inputs first differ at step 3 (equal at step 2)"),
        (0, Stage.INIT, None, "the weights differ before the first step"),
        (5, Stage.INIT, None, "the weights differ before step 5"),
        (40, Stage.UPDATE, 40, "the final weights or loss differ (equal at step 40)"),
        (7, Stage.STDOUT, 6, "the printed losses first differ at step 7 (equal at step 6)"),
        (0, Stage.ARTIFACT, None, "the file model.bin differs"),
        (41, Stage.STEPS, 40, "A ended after step 40, B after step 40 (equal up to step 40)"),
        (0, Stage.STEPS, None, "A has 1 rank, B 1"),
    ],
)
def test_what_differs_first(step: int, stage: Stage, until: int | None, expected: str) -> None:
    assert told(DIFFERENT, step, stage, equal_until=until) == expected


def test_the_rank_is_named_where_there_are_several() -> None:
    assert (
        told(RANKS, 3, Stage.UPDATE, rank=1, equal_until=2)
        == "the weights of rank 1 first differ at step 3 (equal at step 2)"
    )
    assert comparison.sentence(RANKS) == "rank 1: A ended after step 40, B after step 41 (equal up to step 40)"


def test_the_losses_are_shown_where_they_part_and_then_ever_more_rarely() -> None:
    assert [row[0] for row in comparison.curve(DIFFERENT)] == ["7", "8", "9", "10", "11", "16", "32", "40"]
    assert comparison.curve(DIFFERENT)[1] == ["8", "0.125", "0.125", "0"]
    assert comparison.curve(DIFFERENT)[-1][2:] == ["nan", "-"]
    pairs = tuple(LossPair(rank=0, step=step, a=0.0, b=1.0, distance=1.0) for step in range(1, 100_000))
    assert len(comparison.curve(msgspec.structs.replace(DIFFERENT, curve=pairs))) <= 20


def test_the_losses_of_the_rank_that_differs_are_shown() -> None:
    pairs = tuple(LossPair(rank=rank, step=1, a=0.0, b=float(rank), distance=rank) for rank in (0, 1, 2))
    (row,) = comparison.curve(msgspec.structs.replace(RANKS, curve=pairs))
    assert row == ["1", "0", "1", "1"]
    (row,) = comparison.curve(msgspec.structs.replace(DIFFERENT, curve=pairs))  # whose rank 0 has equal losses
    assert row == ["1", "0", "1", "1"]


def test_equal_losses_are_one_line() -> None:
    assert comparison.curve(RANKS) == []
    assert comparison.losses_line(RANKS) == "the losses agree at all 2 steps that both sides kept"
    assert comparison.losses_line(DIFFERENT) == comparison.losses_line(COMPARISONS["compared-same"]) == ""


def test_where_only_the_end_was_kept() -> None:
    found = msgspec.structs.replace(COMPARISONS["compared-same"], steps_compared=0, stages=())
    assert comparison.sentence(found) == "bit-identical at the end; no step was kept on both sides"
    assert comparison.stages_line(found) == "compared: the end alone"


def test_commands_are_told_where_they_are_unlike() -> None:
    other = msgspec.structs.replace(DIFFERENT.b, command=("train.py", "--name", "my model"))
    lines = comparison.heading(msgspec.structs.replace(DIFFERENT, b=other))
    assert lines[1] == "B: after, seeds: 2 flags, seed 7 (train.py --name 'my model')"
    assert "(" not in comparison.heading(DIFFERENT)[1]


def test_a_long_list_of_changes_is_cut() -> None:
    changes = tuple(Change(name=f"p{n}", a="1", b=None) for n in range(comparison.MOST_CHANGES + 3))
    lines = comparison.environment_lines(msgspec.structs.replace(DIFFERENT, environment=changes))
    assert (lines[0], lines[-1]) == ("p0: 1 → none", "and 3 more (--format json)")
