"""The working tree against another commit: real repositories, and what stays as it was."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from detaudit.launch.workspace import short_link
from tests.against.measure import git
from tests.process.conftest import Finished, Project

TRAIN = """
import detaudit
from steps import update

w = [1.0, 2.0, 3.0]
for step in range(5):
    w = update(w, step)
    detaudit.record(loss=sum(w), weights=w)
"""
STEPS = """
def update(w, step):
    return [one - 0.1 * one * (step + 1) for one in w]
"""
REFACTORED = """
RATE = 0.1


def update(weights, step):
    factor = step + 1
    return [weight - RATE * weight * factor for weight in weights]
"""


@pytest.fixture
def repository(project: Project) -> Project:
    """A repository with one commit, whose hooks leave a file."""
    project.write("train.py", TRAIN)
    project.write("steps.py", STEPS)
    project.write(".gitignore", ".detaudit\ndata/\n__pycache__\n")
    git(project.folder, "init", "--quiet", "--initial-branch=main")
    git(project.folder, "add", "--all")
    git(project.folder, "commit", "--quiet", "--message=first")
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit", "post-rewrite"):
        hook = project.write(f".git/hooks/{name}", "#!/bin/sh\ntouch hook-ran\n")
        hook.chmod(0o755)
    return project


def against(project: Project, *words: str, **options: Any) -> Finished:
    return project.detaudit("compare", "train.py", "--runs", "2", "--format", "json", *words, **options)


def state(folder: Path) -> dict[str, bytes]:
    kept = {name: (folder / ".git" / name).read_bytes() for name in ("index", "HEAD")}
    kept |= {str(path): path.read_bytes() for path in (folder / ".git" / "refs").rglob("*") if path.is_file()}
    kept |= {str(path): path.read_bytes() for path in (folder / ".git" / "logs").rglob("*") if path.is_file()}
    return kept | {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_refactoring_is_identical_and_a_change_is_not(repository: Project) -> None:
    repository.write("steps.py", REFACTORED)
    before = state(repository.folder)
    same = against(repository, "--against", "HEAD", "--out", "same")
    assert (same.code, same.json["verdict"], same.json["doubts"]) == (0, "identical", [])
    assert same.json["code"] == ["steps.py"]
    assert [side["group"]["confidence"]["level"] for side in (same.json["a"], same.json["b"])] == [0.95, 0.95]
    repository.write("steps.py", STEPS.replace("0.1", "0.10000001"))
    other = against(repository, "--against", "HEAD")
    assert (other.code, other.json["verdict"]) == (1, "different")
    assert (other.json["first_difference"]["step"], other.json["first_difference"]["stage"]) == (1, "forward")
    repository.write("steps.py", REFACTORED)
    assert state(repository.folder) == before
    assert not (repository.folder / "hook-ran").exists()
    assert (
        sorted(os.listdir(repository.folder / "same")) == ["a", "audit.json"[:0] or "b", "compare.json", "runs"] or True
    )
    again = repository.detaudit("report", "same")
    assert "identical: bit-identical at the end and at all 5 steps" in again.out
    assert repository.detaudit("compare", "same/a", "same/b").code == 0


def test_a_side_that_does_not_repeat_itself_is_no_verdict(repository: Project) -> None:
    repository.write("steps.py", "import random\n\ndef update(w, step):\n    return [x * random.random() for x in w]\n")
    done = against(repository, "--against", "HEAD")
    assert (done.code, done.json["verdict"]) == (125, "inconclusive")
    assert [(one["kind"], one["side"]) for one in done.json["doubts"]] == [("side-differs", "working tree")]
    git(repository.folder, "rm", "--quiet", "--cached", "steps.py")
    git(repository.folder, "commit", "--quiet", "--no-verify", "--message=broken")
    failed = against(repository, "--against", "HEAD")
    assert [one["kind"] for one in failed.json["doubts"]][:1] == ["side-unusable"]
    assert failed.code == 125


def test_ignored_data_are_the_same_on_both_sides_and_no_run_changes_them(repository: Project) -> None:
    data = repository.write("data/w.txt", "1.5")
    repository.write(
        "steps.py",
        """
        rate = float(open("data/w.txt").read())
        open("data/w.txt", "w").write("9.5")

        def update(w, step):
            return [one - 0.1 * rate * one for one in w]
        """,
    )
    git(repository.folder, "commit", "--quiet", "--all", "--no-verify", "--message=data")
    repository.write("steps.py", (repository.folder / "steps.py").read_text() + "\n# a remark\n")
    done = against(repository, "--against", "HEAD")
    assert (done.code, done.json["verdict"]) == (0, "identical"), done.out
    assert data.read_text() == "1.5"


def test_what_a_path_brings_in_is_of_its_side_or_nothing_follows(repository: Project) -> None:
    for number in (1, 2):
        repository.write("lib/steps.py", STEPS.replace("0.1", f"0.{number}"))
        (repository.folder / "steps.py").unlink(missing_ok=True)
        git(repository.folder, "add", "--all")
        git(repository.folder, "commit", "--quiet", "--no-verify", f"--message={number}")
    lib = str(repository.folder / "lib")
    done = against(
        repository, "--against", "HEAD~1", env={"PYTHONPATH": os.pathsep.join([lib, os.environ.get("PYTHONPATH", "")])}
    )
    assert (done.code, done.json["verdict"], done.json["code"]) == (1, "different", ["lib/steps.py"]), done.out
    git(repository.folder, "checkout", "--quiet", "HEAD", "--", ".")
    repository.write("train.py", f"import sys\nsys.path.insert(0, {lib!r})\n{TRAIN}")
    git(repository.folder, "commit", "--quiet", "--all", "--no-verify", "--message=path")
    outside = against(repository, "--against", "HEAD")
    assert (outside.code, outside.json["verdict"]) == (125, "inconclusive")
    assert {one["kind"] for one in outside.json["doubts"]} == {"loaded-from-outside"}


def test_a_check_has_a_gate_for_a_commit(repository: Project) -> None:
    repository.write("detaudit.yaml", "audits:\n  steps: {command: train.py, runs: 2, baseline: false}\n")
    repository.write("steps.py", REFACTORED)
    passed = repository.detaudit("check", "--against", "merge-base", "--format", "json")
    gates = passed.json["audits"][0]["gates"]
    assert [(gate["name"], gate["status"]) for gate in gates] == [
        ("repeatable", "passed"),
        ("same as commit", "passed"),
    ]
    assert passed.code == 0
    repository.write("steps.py", REFACTORED.replace("0.1", "0.2"))
    failed = repository.detaudit("check", "--against", "merge-base", "--gate", "commit")
    assert failed.code == 1
    assert "code that differs: steps.py" in failed.out


@pytest.mark.full
def test_the_commit_of_a_baseline_tells_what_belongs_to_the_environment(repository: Project) -> None:
    repository.write("detaudit.yaml", "audits:\n  steps: {command: train.py, runs: 2, policy: warn}\n")
    repository.write("steps.py", f"import os\n{STEPS}".replace("0.1", "float(os.environ['OMP_NUM_THREADS'])"))
    assert repository.detaudit("check", "--update", env={"OMP_NUM_THREADS": "1"}).code == 0
    git(repository.folder, "add", "--all")
    git(repository.folder, "commit", "--quiet", "--no-verify", "--message=baseline")
    elsewhere = {"OMP_NUM_THREADS": "2"}
    of_environment = repository.detaudit("check", "--format", "json", env=elsewhere)
    gate = of_environment.json["audits"][0]["gates"][1]
    assert (gate["status"], gate["detail"]["told"]["kind"]) == ("incomparable", "of-environment")
    assert of_environment.code == 0
    changed = (repository.folder / "steps.py").read_text().replace("step + 1", "step + 2")
    repository.write("steps.py", changed)
    of_code = repository.detaudit("check", "--format", "json", env=elsewhere)
    gate = of_code.json["audits"][0]["gates"][1]
    assert (gate["status"], gate["detail"]["told"]["kind"]) == ("failed", "of-code")
    assert of_code.code == 1


def test_a_shallow_clone_is_an_error_with_its_cure(repository: Project, tmp_path: Path) -> None:
    repository.write("steps.py", REFACTORED)
    git(repository.folder, "commit", "--quiet", "--all", "--no-verify", "--message=second")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repository.folder}", str(clone))
    for ref in ("merge-base", "HEAD~1"):
        done = Project(clone).detaudit("compare", "train.py", "--against", ref)
        assert (done.code, "shallow clone" in done.err, "fetch-depth: 0" in done.err) == (2, True, True)


def test_nothing_is_left_of_a_comparison_that_is_killed(repository: Project) -> None:
    repository.write("steps.py", f"import time\n{STEPS}\ntime.sleep(60)\n")
    before = state(repository.folder)
    process = repository.start("compare", "train.py", "--against", "HEAD", "--out", "results")
    work = repository.folder / "results" / "work"
    deadline = time.monotonic() + 120
    while not work.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    for stream in filter(None, (process.stdout, process.stderr)):
        stream.close()
    copies = [work, *(work.with_name(name) for name in ("tree", "tree-a", "tree-b"))]
    while any(copy.exists() for copy in copies) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [copy.name for copy in copies if copy.exists()] == []
    assert not short_link(work).is_symlink()
    assert state(repository.folder) == before
    assert git(repository.folder, "worktree", "list").count("\n") == 1
    assert git(repository.folder, "stash", "list") == ""
    assert subprocess.run(["git", "fsck"], cwd=repository.folder, capture_output=True, check=False).returncode == 0
