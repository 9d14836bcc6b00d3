"""A run is ended once all that train have got far enough."""

from pathlib import Path
from typing import Any

import pytest

from detaudit import runner
from detaudit.config.options import Until
from detaudit.launch import EnoughError, RunSpec
from detaudit.model.problems import EndedAfterStep
from detaudit.runner import Followed, Limits, Observer
from tests.fakes import hello
from tests.logs import Writer, row

FRAMEWORK = {"k": "framework", "name": "torch", "version": "2"}
BYE = {"k": "bye", "how": "exit"}


def event(step: int, fw: str = "torch") -> dict[str, Any]:
    return row(step, "update", "d", fw=fw)


class Logs:
    """The event logs of a run that is under way."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder, self._writers = folder / "logs", dict[int, Writer]()
        self._folder.mkdir()
        spec = RunSpec(argv=(), cwd=folder, env={}, folder=folder, live=folder, mark="m")
        self.tick = Followed(spec, limits, Observer())

    def write(self, pid: int, *lines: dict[str, Any]) -> None:
        self._writers.setdefault(pid, Writer(self._folder / f"{pid}.0.jsonl")).write(*lines)

    def enough(self) -> bool:
        try:
            self.tick()
        except EnoughError:
            return True
        return False


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the time as it is for what follows runs; a test may change it."""
    now = [100.0]
    monkeypatch.setattr("detaudit.runner.time.monotonic", lambda: now[0])
    return now


def test_a_run_ends_once_its_step_is_written(tmp_path: Path) -> None:
    logs = Logs(tmp_path, Limits(until=Until(step=3), trained_by=1))
    logs.write(7, hello(), FRAMEWORK, event(1), event(2))
    assert not logs.enough()
    logs.write(7, event(3))
    assert logs.enough()
    assert logs.tick.enough == EndedAfterStep(step=3)


def test_it_waits_for_all_that_trained_in_an_earlier_run(tmp_path: Path) -> None:
    logs = Logs(tmp_path, Limits(until=Until(step=1), trained_by=2))
    logs.write(7, hello(), FRAMEWORK, event(1))
    assert not logs.enough()
    logs.write(8, hello(pid=8), FRAMEWORK, event(1))
    assert logs.enough()


def test_it_waits_for_the_ranks_that_a_launcher_started(tmp_path: Path) -> None:
    logs = Logs(tmp_path, Limits(until=Until(step=1), trained_by=0))
    logs.write(7, hello(rank=0, world=2), FRAMEWORK, event(1))
    assert not logs.enough()
    logs.write(8, hello(pid=8, rank=1, world=2), FRAMEWORK, event(1))
    assert logs.enough()


def test_the_slowest_decides_unless_it_ended(tmp_path: Path) -> None:
    logs = Logs(tmp_path, Limits(until=Until(step=2), trained_by=0))
    logs.write(7, hello(), FRAMEWORK, event(2))
    logs.write(8, hello(pid=8), FRAMEWORK, event(1))
    assert not logs.enough()
    logs.write(8, BYE)
    assert logs.enough()


def test_it_waits_a_second_for_a_process_that_may_train(tmp_path: Path, clock: list[float]) -> None:
    logs = Logs(tmp_path, Limits(until=Until(step=1), trained_by=0))
    logs.write(7, hello(), FRAMEWORK, event(1))
    logs.write(8, hello(pid=8), FRAMEWORK)
    assert not logs.enough()
    clock[0] += runner.SETTLED_S / 2
    assert not logs.enough()
    clock[0] += runner.SETTLED_S / 2
    assert logs.enough()


def test_fits_and_calls_are_no_steps(tmp_path: Path) -> None:
    logs = Logs(tmp_path, Limits(until=Until(step=1), trained_by=0))
    logs.write(7, hello(), FRAMEWORK, event(5, "sklearn"), event(5, "torch inference"))
    assert not logs.enough()
    logs.write(7, event(1))
    assert logs.enough()


def test_a_time_counts_from_the_start_of_the_run(tmp_path: Path, clock: list[float]) -> None:
    logs = Logs(tmp_path, Limits(until=Until(seconds=90), trained_by=0))
    logs.write(7, hello(), FRAMEWORK, event(1), event(2))
    assert not logs.enough()
    clock[0] += 90
    assert logs.enough()


def test_after_the_time_it_waits_for_the_first_step(tmp_path: Path, clock: list[float]) -> None:
    logs = Logs(tmp_path, Limits(until=Until(seconds=90), trained_by=0))
    logs.write(7, hello(), FRAMEWORK)
    clock[0] += 1000
    assert not logs.enough()
    logs.write(7, event(1))
    assert logs.enough()


def test_enough_processes_did_the_last_step(tmp_path: Path) -> None:
    logs = Logs(tmp_path, Limits(last_step=2, trained_by=2))
    logs.write(7, hello(), event(2))
    assert not logs.enough()
    logs.write(8, hello(pid=8), event(2, "sklearn"))
    assert logs.enough()


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("400", Until(step=400)),
        ("90s", Until(seconds=90)),
        ("1.5m", Until(seconds=90)),
        ("2h", Until(seconds=7200)),
    ],
)
def test_a_step_or_a_time(text: str, until: Until) -> None:
    assert Until.parse(text) == until
    assert Until.parse(str(until)) == until


@pytest.mark.parametrize("text", ["", "0", "0s", "-1", "1.5", "soon", "90 s", "1e3", "nan", "inf"])
def test_neither_a_step_nor_a_time(text: str) -> None:
    with pytest.raises(ValueError, match="neither a step, such as 400, nor a time"):
        Until.parse(text)


def test_ranks_that_were_started_again_do_not_keep_a_run_going(tmp_path: Path, clock: list[float]) -> None:
    logs = Logs(tmp_path, Limits(until=Until(step=2), trained_by=2))

    def rank(number: int, attempt: int) -> dict[str, Any]:
        return hello(rank=number, world=2, attempt=attempt)

    logs.write(7, rank(0, 0), FRAMEWORK, event(1))
    logs.write(8, rank(1, 0), FRAMEWORK, event(1))
    logs.write(9, rank(0, 1), FRAMEWORK, event(1), event(2))
    assert not logs.enough()
    logs.write(10, rank(1, 1), FRAMEWORK, event(1), event(2))
    assert logs.enough()


def test_a_run_whose_ranks_were_started_again_goes_to_its_end(tmp_path: Path) -> None:
    logs = Logs(tmp_path, Limits(last_step=1, trained_by=1))
    logs.write(7, hello(rank=0, world=1, attempt=1), FRAMEWORK, event(1), event(2))
    assert not logs.enough()
    logs.write(8, hello(rank=0, world=1, attempt=0), FRAMEWORK, event(1), event(2))
    assert not logs.enough()
