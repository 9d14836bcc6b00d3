"""A fault in one rank is named by rank, stage and step, whatever started the ranks; and all ranks end together."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.ranks import planted
from tests.ranks.planted import Fault

pytestmark = pytest.mark.launches
PYTHON = os.environ.get("RANKS_PYTHON", sys.executable)
"""The interpreter of the ranks. With accelerate, it can be started by that too."""

NEEDS = {"mpirun": "mpirun", "accelerate": str(Path(PYTHON).with_name("accelerate"))}


def command(name: str, ranks: int, script: str = "train.py") -> list[str]:
    if name in NEEDS and shutil.which(NEEDS[name]) is None:
        pytest.skip(f"there is no {NEEDS[name]}")
    return [*planted.launcher(name, ranks, PYTHON), script]


def check(folder: Path, name: str, ranks: int, faults: list[Fault], script: str = "train.py") -> dict[str, Any]:
    report = planted.audit(folder / "job", command(name, ranks, script), faults, "--stages", "all")
    assert list(planted.named(report)) == [fault.expected for fault in faults]
    return report


@pytest.mark.slow
def test_a_fault_before_or_after_ranks_combine_gradients_is_named(tmp_path: Path) -> None:
    report = check(tmp_path, "torchrun", 2, [Fault("backward", 1, 3), Fault("reduce", 1, 2)])
    (group,) = report["groups"]
    assert "reduce" in group["stages"]
    assert (group["replicas"]["ranks"], group["replicas"]["run"]) == (2, 3)
    assert group["replicas"]["first_difference"]["step"] == 2


@pytest.mark.ranks
def test_without_gradients_all_ranks_that_differ_at_once_are_named(tmp_path: Path) -> None:
    report = planted.audit(tmp_path / "job", command("torchrun", 2), [Fault("backward", 1, 3)])
    found = report["groups"][0]["first_difference"]
    assert (found["stage"], found["step"], found["rank"], found["also"]) == ("update", 3, 0, [1])
    assert report["next_steps"][0]["purpose"] == "find-rank"


@pytest.mark.ranks
@pytest.mark.parametrize(("name", "ranks"), [("torchrun", 4), ("torchrun", 8), ("mpirun", 4), ("accelerate", 2)])
def test_a_fault_in_each_stage_is_named(tmp_path: Path, name: str, ranks: int) -> None:
    check(tmp_path, name, ranks, [*planted.faults(f"{name} {ranks}", planted.FAULTS, ranks, 1), planted.NO_FAULT])


@pytest.mark.ranks
def test_ranks_that_were_started_again_are_compared_from_then_on(tmp_path: Path) -> None:
    report = check(tmp_path, "elastic", 2, [Fault("batch", 1, 3)], "again.py")
    restarted = [one for one in report["warnings"] if one["kind"] == "ranks-restarted"]
    assert [(one["run"], one["times"]) for one in restarted] == [(1, 1), (2, 1)]


def running(folder: Path) -> list[int]:
    """Return the processes that work in a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and folder in (path := Path(process.cwd()), *path.parents):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def end_early(folder: Path, words: list[str], launcher: list[str], plants: str) -> subprocess.CompletedProcess[str]:
    """Audit a training that would never end by itself."""
    env = {**os.environ, **planted.prepare(folder / "job"), "STEPS": str(10**9)}
    (folder / "plants.txt").write_text(plants)
    wrapped = [sys.executable, "launch.py", str(folder / "plants.txt"), *launcher]
    return subprocess.run(
        [sys.executable, "-m", "detaudit", "run", *words, "--", *wrapped],
        cwd=folder / "job", env=env, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.ranks
@pytest.mark.parametrize("name", ["torchrun", "elastic", "mpirun", "accelerate"])
def test_until_ends_all_ranks(tmp_path: Path, name: str) -> None:
    done = end_early(tmp_path, ["--runs", "2", "--until", "20"], command(name, 2), "none:0:0\nnone:0:0\n")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "deterministic through step 20" in done.stdout
    assert "replicas: both ranks of each run hold identical weights" in done.stdout
    assert running(tmp_path) == []


@pytest.mark.ranks
@pytest.mark.parametrize("name", ["torchrun", "mpirun"])
def test_a_difference_in_one_rank_ends_all_ranks(tmp_path: Path, name: str) -> None:
    words = ["--runs", "2", "--fail-fast"]
    done = end_early(tmp_path, words, command(name, 2), "none:0:0\nstate:1:30\n")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "first differ at step 30 (state" in done.stdout
    assert "on rank 1" in done.stdout
    assert running(tmp_path) == []
