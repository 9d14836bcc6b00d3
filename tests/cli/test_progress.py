"""Progress without a terminal: one plain line each minute."""

import pytest

from detaudit.cli import progress
from detaudit.cli.progress import ProgressLine


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
