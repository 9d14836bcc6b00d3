"""What the options of ``detaudit trace`` ask for."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from detaudit.cli import main, trace
from detaudit.launch.plan import Settings
from detaudit.runner import Observer
from detaudit.trace.tracer import ReplayRequest


@pytest.mark.parametrize(("words", "stepwise"), [((), True), (("--full",), False), (("--vary", "hash-seed"), False)])
def test_full_and_vary_let_runs_go_to_their_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], stepwise: bool
) -> None:
    found: list[Settings] = []

    def audit(settings: Settings, *_: Any) -> int:
        found.append(settings)
        return 0

    monkeypatch.setattr(trace, "audit", audit)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    assert main(["trace", "train.py", *words]) == 0
    assert [settings.stepwise for settings in found] == [stepwise]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), ReplayRequest()),
        (("--replay", "7"), ReplayRequest(7, None)),
        (("--no-replay",), None),
        (("--repro", "race"), ReplayRequest(repro=Path("race"))),
    ],
)
def test_the_operation_is_replayed_unless_it_is_not_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], expected: ReplayRequest | None
) -> None:
    found: list[ReplayRequest | None] = []

    def audit(settings: Settings, job: Callable[[Observer], Any], *_: Any) -> int:
        found.append(job(Observer())._request.replay)
        return 0

    monkeypatch.setattr(trace, "audit", audit)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    assert main(["trace", "train.py", *words]) == 0
    repro = tmp_path / "race" if expected and expected.repro else None
    assert found == [replace(expected, repro=repro) if expected else None]


@pytest.mark.parametrize("words", [("--replay", "7"), ("--repro", "race")])
def test_a_replay_that_is_wanted_and_not_wanted_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    assert main(["trace", "train.py", "--no-replay", *words]) == 2
    assert "--no-replay" in capsys.readouterr().err
