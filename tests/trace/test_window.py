"""The steps that a trace records."""

import pytest

from detaudit.model import ALL_STEPS, Difference, Stage
from detaudit.trace import tracer
from detaudit.trace.instrumented import EVERY_STEP, Window


@pytest.mark.parametrize(
    ("step", "stage", "at_end", "expected"),
    [
        (0, Stage.INIT, False, Window(0, 1)),
        (1, Stage.BATCH, False, Window(0, 1)),
        (12, Stage.UPDATE, False, Window(12, 12)),
        (48, Stage.STATE, True, Window(48, ALL_STEPS)),
        (48, Stage.OUTPUT, True, Window(48, ALL_STEPS)),
        (0, Stage.SAVED, False, EVERY_STEP),
    ],
)
def test_the_window_of_a_first_difference(step: int, stage: Stage, at_end: bool, expected: Window) -> None:
    found = Difference(rank=0, step=step, stage=stage, at_end=at_end)
    assert tracer.around(found, 1) == expected
