"""Results are for the user alone: who may read them, and that they hold no secrets."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.conftest import Project

TO_SHARE = {".gitignore", "detaudit-recipe.yaml"}
"""Files that are made to be committed or passed on."""

WRITES_A_FILE = """
    import training
    training.train()
    open("shared.txt", "w").close()
"""

READS_THE_CLOCK = """
    import time
    import detaudit
    def train(step, mine=None):
        number = time.time_ns() % 997
        detaudit.record(loss=number, weights=[number, step])
    for step in range(2):
        train(step)
"""
"""What differs here is found only by recording lines."""


def modes(folder: Path) -> dict[str, int]:
    """Return the permissions of a folder and of all that is in it."""
    return {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}


def open_to_others(folder: Path) -> Iterator[str]:
    """Yield what another user could read, and what its owner could not."""
    for name, mode in modes(folder).items():
        expected = 0o700 if (folder / name).is_dir() else 0o600
        if mode != expected and Path(name).name not in TO_SHARE:
            yield f"{mode:o} {name}"


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_only_the_user_may_read_results(project: Project, umask: int) -> None:
    project.write("train.py", WRITES_A_FILE)
    assert project.detaudit("run", "train.py", "--runs", "2", umask=umask).code == 1
    project.write("clock.py", READS_THE_CLOCK)
    assert project.detaudit("trace", "clock.py", umask=umask).code == 1
    assert project.detaudit("bisect", "train.py", "--confirm", "2", "--flag", "python-random-seed",
                            "--recipe", "none", umask=umask).code == 0  # fmt: skip
    results = project.folder / ".detaudit"
    kept = {path.name.partition(".")[2] for path in results.rglob("*.*")}
    assert kept >= {"json", "log", "0.jsonl", "0.ops", "yaml", "gitignore"}
    assert not list(open_to_others(results))
    shared = 0o666 & ~umask
    assert {mode for name, mode in modes(results).items() if Path(name).name in TO_SHARE} == {shared}
    assert stat.S_IMODE((project.folder / "shared.txt").stat().st_mode) == shared


def test_the_lock_file_is_for_everybody(project: Project, seeded: str) -> None:
    project.write("detaudit.yaml", f"audits:\n  train:\n    command: {seeded}\n    runs: 2\n")
    assert project.detaudit("check", "--update", "--out", "deep/results", umask=0o022).code == 0
    assert stat.S_IMODE((project.folder / "detaudit.lock.json").stat().st_mode) == 0o644
    assert not list(open_to_others(project.folder / "deep"))


def test_results_in_a_folder_that_others_may_read_are_still_private(project: Project, seeded: str) -> None:
    (project.folder / "results").mkdir(mode=0o755)
    os.chmod(project.folder / "results", 0o755)
    assert project.detaudit("run", seeded, "--runs", "2", "--out", "results").code == 0
    assert list(open_to_others(project.folder / "results")) == ["755 ."]
