"""Progress without a terminal: one plain line each minute."""

import pytest

from detaudit.cli import progress
from detaudit.cli.progress import ProgressLine
from detaudit.judge.policy import FIRST_S
from detaudit.model import Run, Status


def lines(capsys: pytest.CaptureFixture[str], silent: bool = False) -> list[str]:
    with ProgressLine(silent) as line:
        line.group_started("none", 5)
        line.run_started(2, None)
        for step in range(1, 4):
            line.progress(step, 0.5)
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


def test_a_line_each_minute(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines(capsys) == []
    monkeypatch.setattr(progress, "EVERY_S", -1.0)
    assert lines(capsys) == [f"none: run 2 of 5  step {step}  loss 0.5  0 s" for step in (1, 2, 3)]
    assert lines(capsys, silent=True) == []


class Clock:
    """A time that stands still until a test moves it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("detaudit.cli.progress.time.monotonic", lambda: self.now)


def run(steps: int, wall_s: float) -> Run:
    return Run(id=1, status=Status.OK, exit_code=0, wall_s=wall_s, steps=steps)


def test_how_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, line = Clock(monkeypatch), ProgressLine(silent=True)
    line.group_started("none", 3)
    line.run_started(1, None)
    line.progress(1, None)
    clock.now += 10
    line.progress(51, 0.25)
    assert line._text() == "none: run 1 of 3  step 51  5 steps/s  loss 0.25  10 s"
    line.run_finished(run(steps=100, wall_s=20.0))
    line.run_started(2, None)
    line.progress(1, None)
    clock.now += 10
    line.progress(51, None)
    assert line._text() == "none: run 2 of 3  step 51 of 100  5 steps/s  10 s  about 30 s left for this recipe"
    line.progress(101, None)  # it trains longer than the last one
    assert line._text().startswith("none: run 2 of 3  step 101  10 steps/s")


def test_steps_are_counted_from_the_first_of_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, line = Clock(monkeypatch), ProgressLine(silent=True)
    line.run_started(1, None)
    line.progress(200, None)  # calls of a model, before it trains
    clock.now += 10
    line.progress(1, None)
    clock.now += 10
    line.progress(11, None)
    assert "step 11  1 steps/s" in line._text()


def test_a_narrow_terminal_shows_what_matters_most(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, line = Clock(monkeypatch), ProgressLine(silent=True)
    line.group_started("trial-3", 3)
    line.trial_started(("torch-seed",), 2)
    line.run_started(1, None)
    line.last_step(20000)
    line.progress(1, None)
    clock.now += 10
    line.progress(2001, 0.25)
    tried, left = "with torch-seed, 2 tried before", "about 5 min left for this recipe"
    assert line._text() == f"trial-3: run 1 of 3  {tried}  step 2,001 of 20,000  200 steps/s  loss 0.25  10 s  {left}"
    assert line._text(125) == f"trial-3: run 1 of 3  {tried}  step 2,001 of 20,000  loss 0.25  10 s  {left}"
    assert line._text(84) == f"trial-3: run 1 of 3  step 2,001 of 20,000  10 s  {left}"
    assert line._text(75) == f"trial-3: run 1 of 3  step 2,001 of 20,000  {left}"
    assert line._text(60) == "trial-3: run 1 of 3  step 2,001 of 20,000  about 5 min left"


def test_a_last_step_says_how_long_the_first_run_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, line = Clock(monkeypatch), ProgressLine(silent=True)
    line.group_started("none", 2)
    line.run_started(1, None)
    line.last_step(3601)
    line.progress(1, None)
    clock.now += 10
    line.progress(11, None)
    assert line._text() == "none: run 1 of 2  step 11 of 3,601  1 steps/s  10 s  about 2 h 00 min left for this recipe"


def test_what_a_bisection_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    line = ProgressLine(silent=True)
    Clock(monkeypatch)
    line.group_started("trial-1", 2)
    line.trial_started((), 0)
    line.run_started(1, None)
    assert line._text() == "trial-1: run 1 of 2  without flags  step 0  0 s"
    line.group_started("trial-3", 2)
    line.trial_started(("a", "b", "c"), 2)
    assert line._text() == "trial-3: run 1 of 2  with a, b, c, 2 tried before  step 0  0 s"


def test_runs_that_go_further_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, line = Clock(monkeypatch), ProgressLine(silent=True)
    line.group_started("none", 2)
    line.runs_planned(3, least=True)
    line.run_started(2, None)
    line.last_step(400)
    line.progress(1, None)
    clock.now += 10
    line.progress(101, None)
    assert (
        line._text() == "none: run 2 of 3+  step 101 of at most 400  10 steps/s  10 s  at most 30 s left for this run"
    )
    line.run_finished(run(steps=400, wall_s=40.0))
    line.run_started(3, None)
    assert line._text() == "none: run 3 of 3+  step 0 of at most 400  0 s"  # it goes further than the last one
    line.run_finished(run(steps=400, wall_s=40.0))
    line.runs_planned(5, least=False)
    line.run_started(4, None)
    assert line._text() == "none: run 4 of 5  step 0 of 400  0 s"


def test_a_difference_is_reported_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock, line = Clock(monkeypatch), ProgressLine(silent=False)
    line.group_started("none", 5)
    line.run_started(2, None)
    line.differs(1)  # the report follows soon
    line.group_started("seeds", 5)
    line.run_started(3, None)
    clock.now += FIRST_S
    line.differs(1201)
    line.differs(1202)
    assert capsys.readouterr().err == "seeds: run 3 differs from an earlier run by step 1,201\n"


def test_an_audit_does_not_take_the_steps_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, line = Clock(monkeypatch), ProgressLine(silent=True)
    line.audit_started("long")
    line.group_started("none", 2)
    line.run_started(1, None)
    line.run_finished(run(steps=9000, wall_s=600.0))
    line.audit_started("new")
    line.group_started("none", 2)
    line.run_started(1, None)
    clock.now += 1
    line.progress(3, None)
    assert line._text() == "new, none: run 1 of 2  step 3  1 s"
    line.audit_started("short")
    line.last_step(40)
    line.group_started("none", 2)
    line.run_started(1, None)
    clock.now += 1
    line.progress(3, None)
    assert line._text() == "short, none: run 1 of 2  step 3 of 40  1 s"


def test_runs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, line = Clock(monkeypatch), ProgressLine(silent=True)
    line.group_started("none", 6)
    for number in (1, 2):
        line.run_started(number, None)
        line.at_once(number)
    line.run_finished(run(steps=100, wall_s=20.0))
    line.run_finished(run(steps=100, wall_s=20.0))
    line.run_started(3, None)
    line.at_once(1)
    line.run_started(4, None)
    line.at_once(2)
    clock.now += 10
    assert line._text() == "none: run 4 of 6, 2 at once  step 0 of 100  10 s  about 30 s left for this recipe"


def test_a_run_whose_number_goes_on_from_another_group(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, line = Clock(monkeypatch), ProgressLine(silent=True)
    line.group_started("ops of steps 1 to 2", 5)
    line.run_started(9, None)
    line.run_finished(run(steps=100, wall_s=20.0))
    line.run_started(10, None)
    clock.now += 5
    assert line._text() == "ops of steps 1 to 2: run 10  step 0 of 100  5 s  about 15 s left for this recipe"
