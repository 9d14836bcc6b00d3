"""An array of real Slurm does the runs of a plan, by the script of docs/how-to/cluster.md."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.conftest import Project
from tests.remote.engines.test_cluster_page import block
from tests.remote.slurm import is_here, slurm
from tests.words import same

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.launches,
    pytest.mark.skipif(not is_here(), reason="Slurm is not installed, or this is not root"),
]

TRAIN = """
import os, training
assert not [name for name in os.environ if name.startswith(("SLURM", "SBATCH"))], "a run has nothing of Slurm"
training.train(seed=SEED)
"""


def script(project: Path, runs: Path) -> str:
    """Return the script of the page for this machine: another number of runs and CPUs, and other places."""
    text = block("#SBATCH").text
    for there, here in (
        ("--array=1-8", "--array=1-4"),
        ("--cpus-per-task=4", "--cpus-per-task=1"),
        ("--output=%A_%a.log", f"--output={runs.parent}/%a.log"),
        ("/shared/project", str(project)),
        ("/shared/env/bin/detaudit", f"{sys.executable} -m detaudit"),
        ("/shared/audits/digits", str(runs)),
    ):
        assert there in text
        text = text.replace(there, here)
    return text


@pytest.mark.parametrize(("seed", "code", "said"), [("0", 0, same(4)), ("None", 1, "4 runs gave")])
def test_an_array_does_the_runs_and_join_judges_them(
    seed: str, code: int, said: str, project: Project, tmp_path: Path
) -> None:
    project.write("train.py", TRAIN.replace("SEED", seed))
    assert project.detaudit("plan", "train.py", "--runs", "4", "-o", "plan.json").code == 0
    runs = tmp_path / "shared" / "runs"
    runs.parent.mkdir()
    (tmp_path / "audit.sh").write_text(script(project.folder, runs))
    with slurm() as env:
        subprocess.run(["sbatch", tmp_path / "audit.sh"], env=env, check=True, stdout=subprocess.DEVNULL)
        done = project.detaudit("join", str(runs), "--wait", "3m")
        logs = "".join(path.read_text() for path in runs.parent.glob("*.log"))
    assert done.code == code, done.out + done.err + logs
    assert said in done.out


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "project").mkdir()
    return Project(tmp_path / "project")
