"""A flipped bit is detected, and named where it shows first; an audit without one is deterministic."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.planted import audits, live, plants, rates
from tests.planted.forked import ForkLauncher, serving
from tests.planted.plants import KNOWN, TAPE, TRAININGS, Named, Plant, draw, expected
from tests.planted.table import covered

pytestmark = pytest.mark.launches

ADAM, SAVING, RECORD, CHILDREN, GLOO = (TRAININGS[place] for place in (0, 3, 4, 5, 6))


@pytest.fixture(autouse=True)
def no_watch_of_leftover_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is closed with the process, and would be reported as left open here."""
    monkeypatch.setattr("detaudit.launch.workspace._new_watch", lambda paths: None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("planted")


@pytest.fixture(scope="module")
def launcher(folder: Path) -> Iterator[ForkLauncher]:
    with serving(folder / "out", os.environ) as found:
        yield found


@pytest.mark.parametrize("training", TRAININGS, ids=lambda one: f"{one.name}-{one.world}")
def test_a_flipped_bit_is_named_where_it_shows_first(
    training: plants.Training, launcher: ForkLauncher, folder: Path
) -> None:
    found = audits.planted(launcher, folder, training, draw(training, 0, 4 if training.world == 1 else 2))
    assert [one for one in found if not one.right] == []
    assert any(one.found for one in found)


def test_a_flip_shows_at_once_in_the_stage_of_its_place(launcher: ForkLauncher, folder: Path) -> None:
    steps = {plants.INITIAL: 1, plants.EVALUATION: plants.STEPS}
    struck = [Plant(place, steps.get(place, 3), 1, 2, 5, 30) for place in CHILDREN.places if place in KNOWN]
    found = {one.plant.place: one.found for one in audits.planted(launcher, folder, CHILDREN, struck)}
    assert found.pop(plants.INITIAL) == Named(1, 0, "init")
    assert found == {place: Named(1, steps.get(place, 3), KNOWN[place]) for place in found}
    assert len(found) == 5


@pytest.mark.slow
def test_a_flipped_bit_of_a_variable_of_tensorflow(tmp_path: Path) -> None:
    with serving(tmp_path / "out", os.environ, "tensorflow") as launcher:
        found = audits.planted(launcher, tmp_path, TAPE, draw(TAPE, 0, 8))
    assert [one for one in found if covered(one) and not one.right] == []
    assert any(one.found for one in found)


def test_controls_are_deterministic(launcher: ForkLauncher, folder: Path) -> None:
    for training in (ADAM, SAVING, GLOO, "torch_cnn"):
        assert audits.control(launcher, folder, training) == "deterministic"


def test_a_live_training() -> None:
    found = live.planted(RECORD, [Plant(plants.LOSS, 4, 0, 0, 0, 0), Plant(plants.IN_UPDATE, 2, 0, 0, 7, 63)])
    assert [one.found for one in found] == [Named(0, 4, "forward"), Named(0, 2, "update")]
    assert all(one.right for one in found)


def test_a_batch_that_changes_no_result_is_no_difference() -> None:
    same = {"0 1 batch": "a", "0 1 forward": "b"}
    assert expected(same, {**same, "0 1 batch": "x"}) is None
    assert expected(same, {"0 1 batch": "x", "0 1 forward": "x"}) == Named(0, 1, "batch")
    assert expected(same, {**same, "0 7 state": "x"}) == Named(0, 6, "state")
    assert expected({}, {"0 2 saved step2.pt": "x"}) == Named(0, 0, "saved", "step2.pt")


def test_how_often_runs_catch_a_difference() -> None:
    assert rates.caught((2, 2), 2) == pytest.approx(2 / 3)
    assert set(rates.partitions(6, 3, 3)) == {(3, 2, 1)}
    assert set(rates.partitions(8, 3, 4)) == {(4, 3, 1), (4, 2, 2)}
    assert rates.bounds({"runs": 8, "distinct": 3, "commonest": 4}, 2) == pytest.approx((1 - 9 / 28, 1 - 8 / 28))
    assert rates.promised(2) == pytest.approx(0.95)
    rare = {"runs": 20, "distinct": 2, "commonest": 18}
    assert rates.kept(rare, 2) is None
    assert rates.kept({"runs": 20, "distinct": 20, "commonest": 1}, 2) is True
