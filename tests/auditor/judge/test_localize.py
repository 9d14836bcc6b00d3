"""The words for a first difference are no surer than what was recorded allows."""

import pytest

from detaudit.auditor.judge.localize import cause
from detaudit.model import Stage

ALL = [stage for stage in Stage if stage is not Stage.STEPS]


@pytest.mark.parametrize(
    ("stage", "recorded", "words"),
    [
        (Stage.INIT, ALL, "the weights differ before the first step: seeds, or the order of initialisation"),
        (Stage.BATCH, ALL, "the model's inputs differ while rng agrees: the data pipeline"),
        (
            Stage.FORWARD,
            ALL,
            "the loss differs while rng and batch agree: a forward kernel, or memory that was never set",
        ),
        (Stage.FORWARD, [Stage.FORWARD], "the loss differs: the data, a forward kernel, or memory that was never set"),
        (
            Stage.UPDATE,
            [Stage.FORWARD, Stage.UPDATE],
            "the updated weights differ while forward agrees: a backward kernel, the optimizer, "
            "or a race on shared memory",
        ),
        (Stage.STEPS, ALL, "one run has no such step: control flow depends on time or data"),
    ],
)
def test_words(stage: Stage, recorded: list[Stage], words: str) -> None:
    assert cause(stage, recorded) == words
