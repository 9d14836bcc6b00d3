"""``detaudit check`` as a real process: the gates, the lock file, and what a user gets wrong."""

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.process.conftest import Finished, Project
from tests.words import same

TRAIN = """
import argparse, os, time
import numpy as np
import detaudit

parser = argparse.ArgumentParser()
parser.add_argument("--resume", action="store_true")
parser.add_argument("--forget", action="store_true")
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--seconds", type=float, default=0)
options = parser.parse_args()

start, weights, momentum = 0, np.zeros(8), np.zeros(8)
if options.resume:
    kept = np.load("checkpoint.npz")
    start, weights = int(kept["step"]), kept["weights"]
    momentum = momentum if options.forget else kept["momentum"]
for step in range(start, options.steps):
    gradient = weights - np.random.default_rng(step).normal(size=8)
    momentum = 0.9 * momentum + gradient
    weights = weights - RATE * momentum
    detaudit.record(step=step + 1, loss=float(gradient @ gradient), weights=[weights])
    np.savez("new.npz", step=step + 1, weights=weights, momentum=momentum)
    os.replace("new.npz", "checkpoint.npz")
    time.sleep(options.seconds)
"""
ONE = """
audits:
  small:
    command: train.py
    runs: 2
"""


@pytest.fixture
def trained(project: Project) -> Project:
    project.write("train.py", TRAIN.replace("RATE", "0.1"))
    project.write("detaudit.yaml", ONE)
    return project


def check(project: Project, *words: str, **options: Any) -> Finished:
    return project.detaudit("check", "--format", "json", "--quiet", *words, **options)


def states(done: Finished) -> dict[str, str]:
    return {gate["name"]: gate["status"] for one in done.json["audits"] for gate in one["gates"]}


def test_from_the_first_baseline_to_a_regression(trained: Project) -> None:
    first = check(trained)
    assert (first.code, states(first)) == (125, {"repeatable": "passed", "same as baseline": "inconclusive"})
    assert "detaudit check small --update" in [step["command"] for step in first.json["next_steps"]]

    again = trained.detaudit("report", str(next((trained.folder / ".detaudit").glob("2*"))))
    assert "same as baseline  inconclusive\n" in again.out

    made = check(trained, "--update")
    assert (made.code, len(made.json["lock_changes"])) == (0, 1)
    (change,) = made.json["lock_changes"]
    trained_ranks = made.json["audits"][0]["audit"]["groups"][0]["runs"][0]["ranks"]
    named = {"audit": "small", "name": "", "old": None, "new": None}
    assert change == {**named, "old_ranks": [], "new_ranks": trained_ranks}
    lock = trained.folder / "detaudit.lock.json"
    written = lock.read_bytes()
    again = check(trained, "--update")
    assert (again.code, again.json["lock_changes"], lock.read_bytes()) == (0, [], written)

    same = check(trained, "small")
    assert (same.code, states(same)["same as baseline"]) == (0, "passed")

    trained.write("train.py", TRAIN.replace("RATE", "0.2"))
    other = check(trained)
    assert (other.code, states(other)) == (1, {"repeatable": "passed", "same as baseline": "failed"})
    gate = other.json["audits"][0]["gates"][1]
    assert gate["first_difference"] == {
        "rank": 0,
        "step": 1,
        "stage": "update",
        "site": None,
        "at_end": False,
        "call": False,
        "also": [],
        "output": None,
    }
    assert gate["detail"]["explanation"]["likely"] == ["code"]  # not a kernel: the runs match each other
    assert lock.read_bytes() == written

    alone = check(trained, "--gate", "repeatable")
    assert (alone.code, states(alone)) == (0, {"repeatable": "passed"})

    elsewhere = check(trained, env={"OMP_NUM_THREADS": "1"})
    assert (elsewhere.code, states(elsewhere)["same as baseline"]) == (1, "incomparable")
    shown = trained.detaudit("check", env={"OMP_NUM_THREADS": "1"}).out
    assert "OMP_NUM_THREADS: none → 1" in shown

    trained.write("detaudit.yaml", ONE + "    policy: rebase\n")
    rebased = check(trained, env={"OMP_NUM_THREADS": "1"})
    assert (rebased.code, states(rebased)["same as baseline"]) == (0, "incomparable")
    change = {"audit": "small", "name": "OMP_NUM_THREADS", "old": None, "new": "1", "old_ranks": [], "new_ranks": []}
    assert change in rebased.json["lock_changes"]
    assert check(trained, env={"OMP_NUM_THREADS": "1"}).code == 0


def test_runs_that_differ_fail_and_write_no_baseline(project: Project) -> None:
    project.write("train.py", "import os, detaudit\ndetaudit.record(loss=1.0, weights=[float(os.getpid())])\n")
    project.write("pyproject.toml", '[tool.detaudit.audits.small]\ncommand = "train.py"\nruns = 2\n')
    done = check(project, "--update")
    assert (done.code, states(done)) == (1, {"repeatable": "failed"})
    assert not (project.folder / "detaudit.lock.json").exists()
    warning = {"kind": "baseline-not-written", "audit": "small", "recipe": "", "run": 0, "recording": ""}
    assert done.json["warnings"] == [warning]
    steps = [step["command"] for step in done.json["next_steps"]]
    assert steps == ["detaudit trace train.py", "detaudit bisect train.py"]
    annotations = project.detaudit("check", "--format", "github", "--quiet").out.splitlines()
    assert [line.split(" ")[0] for line in annotations if "same as baseline" in line] == ["::notice"]
    assert [line.split(" ")[0] for line in annotations if "repeatable" in line] == ["::error"]


@pytest.mark.slow
def test_an_update_refuses_a_training_that_differed_before(trained: Project, tmp_path: Path) -> None:
    luck = tmp_path / "luck"  # which nothing records
    flaky = TRAIN.replace("RATE", f"0.1 + os.path.isdir({str(luck)!r}) * os.getpid()")
    trained.write("train.py", flaky)
    luck.mkdir()
    assert trained.detaudit("run", "train.py", "--runs", "2").code == 1
    luck.rmdir()
    trained.write("train.py", flaky)  # the same code, as after a fresh checkout
    lock = trained.folder / "detaudit.lock.json"
    refused = check(trained, "--update")
    assert (refused.code, states(refused), lock.exists()) == (125, {"repeatable": "inconclusive"}, False)
    detail = refused.json["audits"][0]["gates"][0]["detail"]
    (differed,) = (path.parent.name for path in trained.folder.glob(".detaudit/*/audit.json"))
    assert detail == {"kind": "runs-differed-earlier", "runs": 2, "folder": f".detaudit/{differed}"}
    assert [one["kind"] for one in refused.json["warnings"]] == ["baseline-not-written"]

    forced = check(trained, "--update", "--force")
    assert (forced.code, states(forced), lock.exists()) == (0, {"repeatable": "passed"}, True)
    lock.unlink()
    luck.mkdir()
    assert check(trained).code == 1
    luck.rmdir()
    shutil.rmtree(trained.folder / ".detaudit" / differed)
    assert check(trained, "--update").code == 125  # runs of a check differed
    trained.write("train.py", flaky + "# edited\n")
    assert (check(trained, "--update").code, lock.exists()) == (0, True)


def test_more_runs_and_what_they_prove(trained: Project) -> None:
    trained.write("detaudit.yaml", ONE + "    baseline: false\n  other: {command: train.py, baseline: false}\n")
    done = trained.detaudit("check", "--runs", "4")
    assert done.code == 0
    assert done.out.count(same(4)) == 2
    assert done.out.count("4 runs would catch a difference that shows up in 64% of runs or more (95% confidence)") == 2


def test_a_baseline_of_an_audit_that_is_gone_is_named(trained: Project) -> None:
    assert check(trained, "--update").code == 0
    trained.write("detaudit.yaml", ONE.replace("small", "tiny") + "  other: {command: train.py}\n")
    done = trained.detaudit("check", "tiny", "--gate", "repeatable")
    assert done.code == 0
    assert [line for line in done.out.splitlines() if line.startswith("warning: ")] == [
        "warning: small: the lock file has a baseline of this name, but the project has no such audit; "
        "nothing checks it"
    ]


@pytest.mark.slow
def test_a_run_that_was_stopped_and_resumed(trained: Project) -> None:
    trained.write(
        "detaudit.yaml",
        """
        audits:
          killed:
            command: train.py --seconds 0.02
            runs: 2
            resume: train.py --resume
            baseline: false
            isolate: true
          forgets:
            command: train.py
            runs: 2
            stop: train.py --steps 10
            resume: train.py --resume --forget
            baseline: false
          starts-over:
            command: train.py
            runs: 2
            stop: train.py --steps 10
            resume: train.py
            baseline: false
        """,
    )
    done = check(trained)
    assert done.code == 1
    gates = {one["name"]: one["gates"][1] for one in done.json["audits"]}
    assert {name: gate["status"] for name, gate in gates.items()} == {
        "killed": "passed",
        "forgets": "failed",
        "starts-over": "inconclusive",
    }
    stopped = {"kind": "resume-differs", "stopped_after": 10, "steps": 30, "resumed_steps": 20}
    detail = gates["forgets"]["detail"]
    assert detail.items() >= stopped.items()
    assert detail["uninterrupted"][0]["digest"] != detail["resumed"][0]["digest"]
    assert gates["starts-over"]["detail"] == {"kind": "started-over", "resumed_steps": 30}
    assert not list((trained.folder / ".detaudit").glob("*/killed/work"))


def test_the_environment_of_an_audit_reaches_its_runs_and_no_file(trained: Project) -> None:
    trained.write(
        "train.py", 'import os, detaudit\ndetaudit.record(loss=1.0, weights=[len(os.environ["API_TOKEN"])])\n'
    )
    trained.write("detaudit.yaml", ONE + "    env: {API_TOKEN: a-secret, OMP_NUM_THREADS: '2'}\n")
    done = check(trained, "--update")
    assert (done.code, states(done)) == (0, {"repeatable": "passed"})
    lock = json.loads((trained.folder / "detaudit.lock.json").read_text())
    assert lock["audits"]["small"]["environment"]["OMP_NUM_THREADS"] == "2"
    files = [path for path in trained.folder.rglob("*") if path.is_file() and path.name != "detaudit.yaml"]
    assert len(files) > 5
    assert not [path for path in files if b"a-secret" in path.read_bytes()]


def test_a_project_without_audits_is_skipped_by_git_bisect(project: Project) -> None:
    done = project.detaudit("check")
    assert (done.code, done.out) == (125, "")
    assert "no audits configured" in done.err
    assert not (project.folder / ".detaudit").exists()


def test_a_script_that_fails_is_inconclusive(trained: Project) -> None:
    trained.write("train.py", "raise SystemExit('out of memory')\n")
    done = trained.detaudit("check")
    assert done.code == 125
    assert "inconclusive: 2 inconclusive\n" in done.out
    assert "small, repeatable: inconclusive\n  run 1: the script failed with exit status 1\n" in done.out
    assert "| out of memory" in done.out


@pytest.mark.parametrize(
    ("files", "words", "said"),
    [
        ({}, ["smal"], "Did you mean 'small'?"),
        ({"detaudit.yaml": "audits:\n  a: {command: no.py}\n"}, [], "audit 'a': script not found: 'no.py'"),
        ({"detaudit.yaml": ONE + "    recipe: sedes\n"}, [], "Did you mean 'seeds'?"),
        ({"detaudit.yaml": ONE + "    runs: [\n"}, [], "detaudit.yaml:"),
        ({"detaudit.lock.json": "<<<<<<< HEAD\n"}, [], "detaudit.lock.json:1:1 is not a lock file: Expecting value"),
        ({}, ["--config", "none.yaml"], "cannot read none.yaml"),
        ({}, ["--gate", "resume"], "no audit has the gate resume"),
        ({"detaudit.yaml": ONE + "    baseline: false\n"}, ["--gate", "baseline"], "no audit has the gate baseline"),
        ({}, ["--gate", "repeatable", "--update"], "Add --gate baseline."),
        ({}, ["--force"], "--force was given without --update"),
    ],
)
def test_a_mistake_is_reported_with_a_hint(
    trained: Project, files: dict[str, str], words: list[str], said: str
) -> None:
    for name, text in files.items():
        trained.write(name, text)
    done = trained.detaudit("check", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert not (trained.folder / ".detaudit").exists()


def test_an_interruption_reports_what_had_finished(trained: Project) -> None:
    trained.write("detaudit.yaml", ONE + "  slow: {command: train.py --seconds 5}\n")
    with trained.start("check", "--update") as process:
        deadline = time.monotonic() + 120
        while not list((trained.folder / ".detaudit").glob("*/slow/live/logs/*")) and time.monotonic() < deadline:
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted" in out
    assert "small" in out
    assert not (trained.folder / "detaudit.lock.json").exists()


@pytest.fixture
def toys(project: Project) -> Project:
    """Three toys with a baseline."""
    pytest.importorskip("torch")
    project.write(
        "train.py",
        """
        import sys
        import torch
        torch.manual_seed(int(sys.argv[1]))
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(20):
            x = torch.randn(16, 8)
            loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print("step", step, "loss", loss.item())
        torch.save(model.state_dict(), f"{sys.argv[1]}.pt")
        with open(f"{sys.argv[1]}.csv", "w") as file:
            file.writelines(f"{number},{float(value)}\\n" for number, value in enumerate(model(torch.randn(500, 8))))
        """,
    )
    audits = "".join(f"  toy{seed}: {{command: train.py {seed}, runs: 2}}\n" for seed in range(3))
    project.write("detaudit.yaml", f"audits:\n{audits}")
    assert check(project, "--update").code == 0
    return project


@pytest.mark.slow
def test_toy_trainings_match_their_small_lock_file(toys: Project) -> None:
    lock = toys.folder / "detaudit.lock.json"
    assert lock.stat().st_size <= 10_500
    assert max(map(len, lock.read_text().splitlines())) < 1000
    same = check(toys)
    assert (same.code, states(same)["same as baseline"]) == (0, "passed"), same.json["audits"]
