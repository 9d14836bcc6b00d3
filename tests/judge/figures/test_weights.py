"""Which weights differ first, and how far, of recordings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.audit import Auditor
from detaudit.judge.figures import MOST_COLUMNS, MOST_ROWS, figures, weights
from detaudit.model import RunRecord, Training
from detaudit.model.figures import WeightCell
from detaudit.model.record import WeightKind, WeightSet, WeightValue
from tests.fakes import FakeLauncher, run, settings, training
from tests.runs.test_weight_sets import listed, tensor

SAME = ("a", 1.0)


def a_set(
    steps: Mapping[int, tuple[WeightValue, ...]], final: tuple[WeightValue, ...] = (), *, more: int = 0, size: int = 3
) -> WeightSet:
    number = len(next(iter(steps.values())))
    kinds = tuple(WeightKind(dtype="float32", shape=(size,), name=f"w{place}") for place in range(1, number + 1))
    return WeightSet(kinds=kinds, count=number + more, steps=dict(steps), final=final)


def recorded(*sets: WeightSet) -> RunRecord:
    return RunRecord(trainings=(Training(framework="torch", steps=8, weight_sets=sets),))


def test_weights_that_differ_first_are_on_top() -> None:
    a = recorded(a_set(dict.fromkeys((1, 2, 4), (SAME, SAME, SAME, SAME))))
    b = recorded(a_set({1: (SAME, SAME, SAME, SAME), 2: (SAME, SAME, SAME, ("x", 2.0)), 4: (SAME, *[("x", 2.0)] * 3)}))
    found = weights({1: a, 2: b}, 0)
    assert found is not None
    assert [(row.kind.name, row.place) for row in found.rows] == [("w4", 4), ("w2", 2), ("w3", 3)]
    assert (found.differing, found.first, found.count, found.steps) == (3, 1, 4, (1, 2, 4))
    same, differs = WeightCell(digests=1), WeightCell(digests=2, apart=0.5)
    assert [row.cells for row in found.rows] == [(same, differs, differs), *[(same, same, differs)] * 2]


def test_digests_are_counted_and_the_largest_distance_from_the_first_run_is_shown() -> None:
    values = [("a", 4.0), ("b", 2.0), ("b", 2.0), ("c", 1.0)]
    found = weights({run: recorded(a_set({1: (value,)})) for run, value in enumerate(values, 1)}, 0)
    assert found is not None
    (row,) = found.rows
    assert row.cells == (WeightCell(digests=3, apart=0.75),)


@pytest.mark.parametrize(
    ("sums", "apart"),
    [((1.0, 1.0), 0.0), ((0.0, -0.0), 0.0), ((1.0, -1.0), 2.0), ((0.0, 1e-300), 1.0), ((1e308, -1e308), 2.0),
     ((1.0, "nan"), None), (("inf", "inf"), None)],
)  # fmt: skip
def test_how_far_two_sums_are_apart(sums: tuple[Any, Any], apart: float | None) -> None:
    a, b = (recorded(a_set({1: ((digest, total),)})) for digest, total in zip("ab", sums, strict=True))
    found = weights({1: a, 2: b}, 0)
    assert found is not None
    assert found.rows[0].cells == (WeightCell(digests=2, apart=apart),)


def test_sums_of_equal_digests_are_not_compared() -> None:
    """A device adds up in an order of its own."""
    found = weights({1: recorded(a_set({1: (SAME,)})), 2: recorded(a_set({1: (("a", 1.5),)}))}, 0)
    assert found is not None
    assert (found.rows, found.differing, found.count) == ((), 0, 1)


def test_a_run_that_ended_early_matches_nothing_later() -> None:
    whole = recorded(a_set({1: (SAME, SAME), 2: (SAME, SAME)}, (SAME, SAME)))
    short = recorded(a_set({1: (SAME, ("x", 1.0))}))
    found = weights({1: whole, 2: short}, 0)
    assert found is not None
    assert (found.steps, found.listed) == ((1,), (1,))
    assert [row.cells for row in found.rows] == [(WeightCell(digests=2),)]
    other = recorded(a_set({1: (SAME, SAME), 2: (SAME, ("x", 1.0))}, (SAME, SAME)))
    found = weights({1: whole, 2: other, 3: short}, 0)
    assert found is not None
    assert found.steps == (1, 2)
    assert [row.cells for row in found.rows] == [(WeightCell(digests=2), WeightCell(digests=2))]


def test_weights_of_different_shapes_are_not_compared() -> None:
    assert weights({1: recorded(a_set({1: (SAME,)})), 2: recorded(a_set({1: (("x", 1.0),)}, size=4))}, 0) is None


def test_weights_of_two_sets_have_places_of_their_own() -> None:
    a = recorded(a_set({1: (SAME,)}, more=2), a_set({2: (SAME,)}))
    b = recorded(a_set({1: (SAME,)}, more=2), a_set({2: (("x", 1.0),)}))
    found = weights({1: a, 2: b}, 0)
    assert found is not None
    assert [(row.place, row.cells) for row in found.rows] == [(4, (None, WeightCell(digests=2)))]
    assert (found.count, found.unlisted) == (2, 2)


@given(st.integers(1, 60), st.integers(1, 30), st.data())
def test_a_table_is_small_and_has_the_first_difference_and_the_last_column(
    tensors: int, columns: int, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, columns - 1))
    steps = [2**power for power in range(columns)]
    same: tuple[WeightValue, ...] = (SAME,) * tensors
    other: tuple[WeightValue, ...] = (("x", 1.0),) * tensors
    a = recorded(a_set(dict.fromkeys(steps, same)))
    b = recorded(a_set({step: same if place < first else other for place, step in enumerate(steps)}))
    found = weights({1: a, 2: b}, 0)
    assert found is not None
    assert len(found.steps) == min(columns, MOST_COLUMNS)
    assert {steps[first], steps[-1]} <= {*found.steps} <= {*found.listed} == {*steps}
    assert (len(found.rows), found.differing, found.first) == (min(tensors, MOST_ROWS), tensors, tensors)
    for row in found.rows:
        assert [cell is not None and cell.digests > 1 for cell in row.cells] == [
            step is not None and step >= steps[first] for step in found.steps
        ]


def test_there_is_no_table_of_one_run_or_without_weights() -> None:
    one = recorded(a_set({1: (SAME,)}))
    assert weights({1: one}, 0) is None
    assert weights({1: one, 2: one}, 1) is None
    assert weights({1: recorded(), 2: recorded()}, 0) is None
    assert weights({}, 0) is None


def a_log(digest: str, total: float) -> list[dict[str, Any]]:
    """Return a real event log of two steps, in whose second the bias differs."""
    hello, framework, *events, final, bye = training(digest)
    ends = tensor("w2"), tensor(digest, 1, total=total)
    first = listed(1, tensor("w1"), tensor("b1", 1), names=("Net.weight", "Net.bias"))
    return [hello, framework, *events[:2], first, *events[2:], listed(2, *ends), {**final, "weights": ends}, bye]


def test_weights_of_an_audit_are_read_from_its_event_logs(tmp_path: Path) -> None:
    made = settings(tmp_path, runs=3)
    audit = Auditor(made, FakeLauncher(run(a_log("a", 1.0)), run(a_log("b", 2.0)), run([], exit_code=1))).run()
    (found,) = figures(audit, made.out).groups
    assert found.weights is not None
    (row,) = found.weights.rows
    assert (found.weights.runs, found.weights.steps, found.weights.count) == ((1, 2), (1, 2, None), 2)
    assert row.kind == WeightKind(dtype="float32", shape=(1,), name="Net.bias")
    assert row.cells == (WeightCell(digests=1), *[WeightCell(digests=2, apart=0.5)] * 2)


def test_logs_of_an_older_recorder_have_the_other_figures(tmp_path: Path) -> None:
    made = settings(tmp_path, runs=2)
    audit = Auditor(made, FakeLauncher(run(training()), run(training("other")))).run()
    (found,) = figures(audit, made.out).groups
    assert found.weights is None
    assert found.ladder is not None
