"""Trainings that would go on for ever, of which a difference is known all the same."""

import json
import re

import pytest

from tests.process.conftest import Project
from tests.process.test_until import ENDLESS

UNSEEDED = ENDLESS.replace("torch.manual_seed", "id") + "    train()\n"
LONG = ENDLESS.replace("itertools.count(1)", "range(1, 1001)").replace("sleep(0.002)", "sleep(0.015)") + "    train()\n"

pytestmark = pytest.mark.full


@pytest.mark.slow
def test_two_runs_that_differ_are_known_though_none_ends(project: Project) -> None:
    project.write("train.py", UNSEEDED)
    done = project.detaudit("run", "train.py", "--runs", "3", "--format", "json")
    assert done.code == 1, done.err
    (group,) = json.loads(done.out)["groups"]
    assert [run["status"] for run in group["runs"]] == ["ended"] * 3
    assert len({run["through"] for run in group["runs"]}) == 1
    assert group["distinct_results"] == 3
    assert re.search(r"^without flags: run 2 differs from an earlier run by step \d+$", done.err, re.MULTILINE)


@pytest.mark.slow
def test_what_the_script_overrides_is_known_though_it_never_ends(project: Project) -> None:
    unsafe = UNSEEDED.replace("    train()\n", "    torch.use_deterministic_algorithms(False)\n    train()\n")
    project.write("train.py", unsafe)
    done = project.run("train.py", "--runs", "2", "--flag", "torch-deterministic-algorithms")
    flags = {flag["id"]: flag["state"] for flag in done.json["groups"][0]["flags"]}
    assert flags["torch-deterministic-algorithms"] == "overridden"


@pytest.mark.slow
def test_runs_that_match_go_to_their_ends(project: Project) -> None:
    project.write("train.py", LONG)
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0, done.out
    (group,) = done.json["groups"]
    assert [run["status"] for run in group["runs"]] == ["ended", "ok", "ok"]
    assert group["through"] is None
    whole = project.run("train.py", "--runs", "2", "--full")
    assert [run["status"] for run in whole.json["groups"][0]["runs"]] == ["ok", "ok"]


@pytest.mark.slow
def test_a_trace_of_a_training_that_never_ends(project: Project) -> None:
    late = "    import os\n    train(after=lambda step: torch.manual_seed(os.getpid()) if step == 5 else None)\n"
    project.write("train.py", ENDLESS + late)
    done = project.detaudit("trace", "train.py", "--format", "json")
    assert done.code == 1, done.err
    assert json.loads(done.out)["groups"][0]["first_difference"]["step"] == 6


@pytest.mark.slow
def test_a_trace_tries_a_flag_though_no_run_ends(project: Project) -> None:
    slow = "    train(after=lambda step: time.sleep(0.1 if step < 120 else 0))\n"
    project.write("train.py", UNSEEDED.replace("    train()\n", slow))
    done = project.detaudit("trace", "train.py", "--format", "json")
    assert done.code == 1, done.err
    report = json.loads(done.out)
    (trial, *_) = (fix["trial"] for fix in report["culprit"]["flags"])
    through = report["groups"][0]["through"]
    assert trial == {"runs": 2, "first_difference": None, "failed": False, "repeats": False, "through": 4 * through}


def test_full_and_until_are_not_combined(project: Project) -> None:
    project.write("train.py", "pass\n")
    done = project.detaudit("run", "train.py", "--full", "--until", "3")
    assert done.code == 2
    assert "--full cannot be combined with --until" in done.err


@pytest.mark.slow
def test_trainings_one_after_another_are_no_difference(project: Project) -> None:
    project.write("one.py", LONG.replace("1001", "501").replace("0.015", "0.03"))
    project.write(
        "train.py",
        """
        import subprocess, sys
        from sklearn.datasets import load_digits
        from sklearn.linear_model import LogisticRegression
        for _ in range(2):
            subprocess.run([sys.executable, "one.py"], check=True)
        LogisticRegression(max_iter=9).fit(*load_digits(return_X_y=True))
        """,
    )
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0, done.out
    statuses = [run["status"] for run in done.json["groups"][0]["runs"]]
    assert (statuses[0], statuses[-2:]) == ("ended", ["ok", "ok"])


@pytest.mark.slow
def test_a_run_that_is_ended_saves_nothing_for_the_next(project: Project) -> None:
    saves = """
    import signal, pathlib

    left = pathlib.Path("preempted")
    torch.manual_seed(left.exists())
    signal.signal(signal.SIGTERM, lambda *_: left.touch())
"""
    project.write("train.py", LONG.replace("    train()\n", saves + "    train(seed=int(left.exists()))\n"))
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0, done.out
    assert not (project.folder / "preempted").exists()
