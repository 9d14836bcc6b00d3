"""Reports name files relative to the repository of the working directory: here there is none."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def nowhere_in_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
