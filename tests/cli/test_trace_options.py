"""What the options of ``detaudit trace`` ask for."""

from pathlib import Path
from typing import Any

import pytest

from detaudit.cli import main, trace
from detaudit.launch.plan import Settings


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
