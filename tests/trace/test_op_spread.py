"""How a difference spreads: by step, from the first one in which an operation differs."""

from collections.abc import Mapping

import pytest

from detaudit.model import Number, StepSpread
from detaudit.trace import align
from detaudit.trace.align import Spread, first_differing_operation
from detaudit.trace.operations import OpLine
from tests.trace.test_op_diff import op

NO_LOSSES: Mapping[int, Number] = {}


def stream(run: str) -> list[OpLine]:
    """Return three steps: a difference enters in the second, which one operation of the third absorbs."""
    return [
        op("mul", [("x", 0)], [("y", 1)], step=1),
        op("put", [("y", 1)], [(f"p{run}", 2)], step=2, line=7),
        op("sum", [(f"p{run}", 2)], [(f"s{run}", 3)], step=2),
        op("add", [("x", 0)], [("z", 4)], step=2),
        op("round", [(f"s{run}", 3)], [("r", 5)], step=3),
        op("log", [(f"s{run}", 3)], [(f"l{run}", 6)], step=3),
    ]


def test_operations_that_differ_are_counted_by_step() -> None:
    spread = Spread()
    finding = first_differing_operation(stream("a"), stream("b"), spread=spread)
    assert finding is not None
    assert finding.op.op == "aten.put"
    assert spread.steps({2: 0.5, 3: "nan"}, {2: 0.25}) == (
        StepSpread(step=2, operations=3, differing=2, absorbing=0, losses=(0.5, 0.25)),
        StepSpread(step=3, operations=2, differing=1, absorbing=1),
    )


def test_of_runs_that_did_the_same_nothing_spreads() -> None:
    spread = Spread()
    assert first_differing_operation(stream("a"), stream("a"), spread=spread) is None
    assert spread.steps(NO_LOSSES, NO_LOSSES) == ()


def test_of_a_long_training_the_first_steps_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(align, "MOST_STEPS", 3)
    spread = Spread()
    for step in range(9, 0, -1):
        spread.add(step, takes=False, returns=step == 4)
    assert [one.step for one in spread.steps(NO_LOSSES, NO_LOSSES)] == [4, 5, 6]
