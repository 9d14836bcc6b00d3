"""What figures show, of recordings: bins of steps, losses, and the ladder of stages."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from detaudit.audit import Auditor
from detaudit.judge.figures import MOST_BINS, NEAR, bins, figures, ladder, losses
from detaudit.model import Difference, FinalState, Number, RunRecord, Stage, Training
from detaudit.model.figures import Distance, NoFigure
from tests.baseline.test_load import printing
from tests.fakes import FakeLauncher, hello, run, settings, training


def recorded(
    digests: Mapping[Stage, Mapping[int, str]] | None = None, losses: Mapping[int, Number] | None = None
) -> RunRecord:
    stages = {stage: {step: (digest,) for step, digest in steps.items()} for stage, steps in (digests or {}).items()}
    steps = max((step for one in stages.values() for step in one), default=0)
    return RunRecord(trainings=(Training(framework="torch", steps=steps, digests=stages, losses=losses or {}),))


def differs(step: int, stage: Stage = Stage.UPDATE) -> Difference:
    return Difference(rank=0, step=step, stage=stage)


@given(st.integers(1, 5000), st.lists(st.integers(1, 5000), max_size=8))
def test_bins_hold_each_step_once_and_none_holds_steps_before_and_after_a_mark(last: int, marks: list[int]) -> None:
    found = bins(range(1, last + 1), marks)
    assert [step for a, b in found for step in range(a, b + 1)] == list(range(1, last + 1))
    assert len(found) <= 2 * MOST_BINS
    for mark in marks:
        assert not any(a < mark <= b for a, b in found)


def test_steps_near_the_first_difference_have_bins_of_their_own() -> None:
    found = bins(range(1, 100_001), [50_000])
    assert all((step, step) in found for step in range(50_000 - NEAR, 50_000 + NEAR + 1))
    assert len(found) <= MOST_BINS + 2 * NEAR


def test_runs_with_the_same_losses_share_a_curve() -> None:
    found = losses(
        {
            1: recorded(losses={1: 1.0, 2: 0.5}),
            2: recorded(losses={1: 1.0, 2: 0.25}),
            3: recorded(losses={1: 1.0, 2: 0.5}),
        },
        0,
    )
    assert found is not None
    assert [curve.runs for curve in found.curves] == [(1, 3), (2,)]
    assert found.first == 2
    assert found.curves[1].distances == (Distance(greatest=0.0, equal=True), Distance(greatest=0.25))


def test_a_loss_that_is_not_finite_is_marked_and_an_equal_one_is_equal() -> None:
    found = losses({1: recorded(losses={1: "nan", 2: "nan"}), 2: recorded(losses={1: "nan", 2: 1.0})}, 0)
    assert found is not None
    assert found.curves[0].points[0] is not None
    assert found.curves[0].points[0].broken
    assert found.curves[1].distances == (Distance(greatest=0.0, equal=True), Distance(greatest=None))


def test_losses_of_steps_that_only_one_run_has_are_not_compared() -> None:
    found = losses({1: recorded(losses={1: 1.0, 2: 0.5}), 2: recorded(losses={1: 1.0})}, 0)
    assert found is not None
    assert found.first is None
    assert found.curves[1].distances == (Distance(greatest=0.0, equal=True), None)
    assert found.curves[1].points[1] is None


@pytest.mark.parametrize(
    ("types", "expected"), [(("float32", "float32"), "float32"), (("float32", "float64"), None), ((None, None), None)]
)
def test_losses_have_a_type_if_all_runs_have_the_same(types: tuple[str | None, ...], expected: str | None) -> None:
    records = {}
    for run_, dtype in enumerate(types, 1):
        final = FinalState(loss=1.0, loss_dtype=dtype)
        records[run_] = RunRecord(trainings=(Training(framework="torch", losses={1: 1.0}, final=final),))
    records[3] = recorded(losses={1: 1.0})  # it was ended before it said
    found = losses(records, 0)
    assert found is not None
    assert found.dtype == expected


def test_there_are_no_curves_without_losses() -> None:
    assert losses({1: recorded(), 2: recorded()}, 0) is None


def test_the_ladder_counts_different_digests() -> None:
    a = recorded({Stage.FORWARD: {1: "a", 2: "b"}, Stage.UPDATE: {1: "a", 2: "c"}})
    b = recorded({Stage.FORWARD: {1: "a", 2: "b"}, Stage.UPDATE: {1: "x", 2: "y"}})
    c = recorded({Stage.FORWARD: {1: "a", 2: "b"}, Stage.UPDATE: {1: "x", 2: "z"}})
    found = ladder({1: a, 2: b, 3: c}, [differs(1)], 0)
    assert found is not None
    assert found.columns == ((1, 1), (2, 2))
    assert {row.stage: row.counts for row in found.rows} == {Stage.FORWARD: (1, 1), Stage.UPDATE: (2, 3)}
    assert found.first == ((Stage.UPDATE, 1),)


def test_steps_after_the_end_of_a_run_are_not_said_to_match() -> None:
    long, short = recorded({Stage.UPDATE: {1: "a", 2: "b", 3: "c"}}), recorded({Stage.UPDATE: {1: "a"}})
    found = ladder({1: long, 2: short}, [], 0)
    assert found is not None
    assert found.rows[0].counts == (1, None, None)


def test_a_long_training_has_columns_around_its_first_difference() -> None:
    same = dict.fromkeys(range(1, 9001), "s")
    other = {step: "s" if step < 5000 else f"x{step}" for step in range(1, 9001)}
    found = ladder({1: recorded({Stage.UPDATE: same}), 2: recorded({Stage.UPDATE: other})}, [differs(5000)], 0)
    assert found is not None
    columns = ((1, 1), (2, 2), (3, 4998), (4999, 4999), (5000, 5000), (5001, 5001), (5002, 8999), (9000, 9000))
    assert found.columns == columns
    assert found.rows[0].counts == (1, 1, 1, 1, 2, 2, 2, 2)


def test_one_step_that_differs_within_many_is_found() -> None:
    same = dict.fromkeys(range(1, 9001), "s")
    found = ladder({1: recorded({Stage.RNG: same}), 2: recorded({Stage.RNG: {**same, 6000: "x"}})}, [], 0)
    assert found is not None
    assert found.rows[0].counts[found.columns.index((4, 8999))] == 2


def test_figures_of_an_audit_are_read_from_its_event_logs(tmp_path: Path) -> None:
    made = settings(tmp_path, runs=2)
    audit = Auditor(made, FakeLauncher(run(training()), run(training("other")))).run()
    (found,) = figures(audit, made.out).groups
    assert found.missing is None
    assert found.ladder is not None
    assert found.ladder.first == ((Stage.UPDATE, 2),)
    assert found.losses is not None


def test_without_event_logs_there_are_no_figures(tmp_path: Path) -> None:
    made = settings(tmp_path, runs=2)
    audit = Auditor(made, FakeLauncher(run(training()), run(training("other")))).run()
    for log in made.out.rglob("*.jsonl"):
        log.unlink()
    (found,) = figures(audit, made.out).groups
    assert found.missing is NoFigure.LOGS_GONE
    assert (found.ladder, found.losses) == (None, None)


def test_a_run_alone_has_no_ladder_since_it_matches_nothing() -> None:
    assert ladder({1: recorded({Stage.UPDATE: {1: "a"}})}, [], 0) is None


def test_losses_that_were_printed_are_read_with_the_pattern_of_the_audit(tmp_path: Path) -> None:
    made = settings(tmp_path, runs=2, loss_pattern=re.compile(r"loss (\S+)"))
    bare = [hello(), {"k": "bye", "how": "exit"}]
    scripts = (printing(f"loss 0.5\nloss {last}\n", bare) for last in (0.25, 0.125))
    audit = Auditor(made, FakeLauncher(*scripts)).run()
    assert audit.loss_pattern == r"loss (\S+)"
    (found,) = figures(audit, made.out, sampled=True).groups
    assert found.losses is not None
    assert (found.losses.first, found.missing) == (2, None)
    assert [one.losses for one in found.samples] == [(0.5, 0.25), (0.5, 0.125)]
    (older,) = figures(replace(audit, loss_pattern=None), made.out).groups
    assert older.missing is NoFigure.LOGS_GONE
