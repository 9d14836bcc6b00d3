"""Real operations, recorded in one process and repeated in others: a replay says what each does by itself."""

import subprocess
import sys
from pathlib import Path

import pytest

from detaudit.model import ReplayVerdict
from tests.replay.cases import CASES, Case
from tests.replay.harness import answer, recorded, replayed


def check(case: Case, folder: Path) -> None:
    saved = recorded(case, folder / "recorded")
    found = replayed(saved, folder / "replayed", folder / "repro")
    assert answer(found) == case.answer, found


@pytest.mark.launches
@pytest.mark.replay
@pytest.mark.parametrize("case", CASES, ids=[one.name for one in CASES])
def test_what_an_operation_does_by_itself(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
    shown = (ReplayVerdict.RACES, ReplayVerdict.MEMORY, ReplayVerdict.DETERMINISTIC)
    if case.verdict in shown and not case.op.startswith("planted"):
        script = [sys.executable, str(tmp_path / "repro" / "repro.py")]
        done = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == (case.verdict is not ReplayVerdict.DETERMINISTIC), done.stderr
        assert f"{case.op}" in done.stdout
