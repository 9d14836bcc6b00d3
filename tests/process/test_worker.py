"""Plans, workers and joins as commands: the report is that of `detaudit run`, whatever called the workers."""

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.process.conftest import Finished, Project

SLEEPS = "import time, training\ntraining.train(seed=0)\ntime.sleep(60)\n"
HASH = "import training\ntraining.train(seed=hash('x') % 1000)\n"


def planned(project: Project, *words: str, runs: int = 3) -> dict[str, Any]:
    done = project.detaudit("plan", "train.py", "--runs", str(runs), "-o", "plan.json", *words)
    assert done.code == 0, done.err
    found = json.loads((project.folder / "plan.json").read_text())
    assert isinstance(found, dict)
    return found


def work(project: Project, run: int, *words: str, **options: Any) -> Finished:
    return project.detaudit("worker", "plan.json", "--run", str(run), "--out", "shared", *words, **options)


def joined(project: Project, *words: str) -> Finished:
    return project.detaudit("join", "shared", "--format", "json", *words)


def fingerprints(report: dict[str, Any]) -> list[object]:
    (group,) = report["groups"]
    return [(run["status"], run["steps"], run["ranks"]) for run in group["runs"]]


@pytest.mark.full
def test_the_report_is_that_of_run(project: Project, seeded: str) -> None:
    planned(project)
    for run in (2, 3, 1):
        done = work(project, run)
        assert done.code == 0, done.err
        assert f"run {run} of 3 finished" in done.err
    found, here = joined(project), project.run(seeded, "--runs", "3")
    assert (found.code, here.code) == (0, 0), found.err
    assert fingerprints(found.json) == fingerprints(here.json)
    (group,), (local,) = found.json["groups"], here.json["groups"]
    for key in ("verdict", "stages", "confidence", "flags", "sources", "output_differences", "recipe"):
        assert group[key] == local[key], key
    assert "machines" not in group or not group["machines"]
    assert not list(project.folder.joinpath("shared").glob(".*")), "nothing half-written is left"


@pytest.mark.full
def test_a_hash_seed_of_the_caller_does_not_hide_a_difference(project: Project) -> None:
    """Dask sets one in its workers: with it a script whose order of a set matters looked deterministic."""
    project.write("train.py", HASH)
    planned(project)
    for run in (1, 2, 3):
        assert work(project, run, env={"PYTHONHASHSEED": "6640", "OMP_NUM_THREADS": "1"}).code == 0
    done = joined(project)
    assert done.code == 1
    assert done.json["verdict"] == "nondeterministic"
    assert "PYTHONHASHSEED" not in done.json["environment"]["variables"]


@pytest.mark.slow
def test_with_trees_event_logs_are_fetched_of_runs_that_differ(project: Project) -> None:
    project.write("train.py", "import training\ntraining.train(steps=600, seed=hash('x') % 1000)\n")
    planned(project, "--records", "trees", "--recipe", "seeds", "--recipe", "none", runs=2)
    for run in (1, 2, 3, 4):
        assert work(project, run).code == 0
    assert sorted(path.suffix for path in project.folder.glob("shared/*")) == [".detaudit"] * 4 + [".logs"] * 4
    done = joined(project, "--out", "report")
    assert [group["verdict"] for group in done.json["groups"]] == ["deterministic", "nondeterministic"], done.err
    assert done.json["groups"][1]["first_difference"]["step"] == 1
    logs = {path.parts[-4:-2] for path in project.folder.glob("report/runs/*/*/logs/*.rows")}
    assert logs == {("none", "1"), ("none", "2")}
    compared = project.detaudit("compare", "report", "report")
    assert compared.code == 125
    assert "was not fetched" in compared.err
    for path in project.folder.glob("shared/*.logs"):
        path.unlink()
    gone = joined(project)
    assert gone.code not in (0, 1)
    assert "Copy it back to shared" in gone.err


@pytest.mark.slow
def test_a_recipe_travels(project: Project) -> None:
    project.write("train.py", HASH)
    planned(project, "--recipe", "none", "--recipe", "seeds", runs=2)
    for run in (1, 2, 3, 4):
        assert work(project, run).code == 0
    done = joined(project)
    assert [group["verdict"] for group in done.json["groups"]] == ["nondeterministic", "deterministic"]


@pytest.mark.slow
def test_files_that_runs_save_are_compared(project: Project, seeded: str) -> None:
    save = "numpy.save('model.npy', numpy.array([random.SystemRandom().random()]))"
    project.write("train.py", f"import random, numpy, training\ntraining.train(seed=0)\n{save}\n")
    planned(project, runs=2)
    for run in (1, 2):
        assert work(project, run).code == 0
    done = joined(project)
    assert done.code == 1
    assert done.json["groups"][0]["first_difference"]["stage"] == "saved"


def test_a_run_is_done_once(project: Project, seeded: str) -> None:
    planned(project)
    assert "finished" in work(project, 1).err
    again = work(project, 1)
    assert again.code == 0
    assert "stored before" in again.err


def test_a_training_that_fails_is_stored(project: Project) -> None:
    project.write("train.py", "raise SystemExit(7)\n")
    planned(project, runs=2)
    for run in (1, 2):
        done = work(project, run)
        assert done.code == 0, "or a scheduler would repeat it"
        assert "exit status 7" in done.err
    done = joined(project)
    assert done.code == 125
    assert [run["status"] for run in done.json["groups"][0]["runs"]] == ["failed", "failed"]


def test_a_worker_ended_by_its_scheduler_leaves_nothing(project: Project) -> None:
    project.write("train.py", SLEEPS)
    planned(project, runs=2)
    worker = project.start("worker", "plan.json", "--run", "1", "--out", "shared")
    trained = _child(worker.pid, "train.py")
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=30)
    assert worker.returncode == 130
    assert not trained.is_running() or trained.status() == psutil.STATUS_ZOMBIE
    assert not list(project.folder.glob("shared/*"))


def test_a_worker_that_is_killed_leaves_no_process(project: Project) -> None:
    project.write("train.py", SLEEPS)
    planned(project, runs=2)
    worker = project.start("worker", "plan.json", "--run", "1", "--out", "shared")
    trained = _child(worker.pid, "train.py")
    worker.kill()
    worker.communicate()
    psutil.wait_procs([trained], timeout=30)
    assert not trained.is_running()


@pytest.mark.slow
def test_the_wait_for_runs(project: Project, seeded: str) -> None:
    planned(project, runs=2)
    assert work(project, 1).code == 0
    join = project.start("join", "shared", "--wait", "5m", "--format", "json")
    assert join.stderr is not None
    assert join.stderr.readline() == "waiting for runs 2\n"
    assert work(project, 2).code == 0
    out, _ = join.communicate(timeout=60)
    assert json.loads(out)["verdict"] == "deterministic"


def test_an_interrupted_wait_reports_what_is_there(project: Project, seeded: str) -> None:
    planned(project)
    assert work(project, 1).code == 0
    join = project.start("join", "shared", "--wait", "5m", "--format", "json")
    assert join.stderr is not None
    join.stderr.readline()
    join.send_signal(signal.SIGINT)
    out, _ = join.communicate(timeout=60)
    assert join.returncode == 130
    assert len(json.loads(out)["groups"][0]["runs"]) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("worker", "plan.json", "--run", "9", "--out", "shared"), "no run 9"),
        (("worker", "plan.json", "--out", "shared"), "name one run"),
        (("worker", "plan.json", "--run", "1", "--index", "0", "--out", "shared"), "name one run"),
        (("worker", "other.json", "--run", "1", "--out", "shared"), "no plan other.json"),
        (("worker", "train.py", "--run", "1", "--out", "shared"), "is not a plan"),
        (("worker", "plan.json", "--run", "1", "--out", "shared", "--python", "nothing"), "command not found"),
        (("join", "empty"), "no run"),
        (("join", "shared", "--wait", "3"), "is not a time"),
        (("join", "shared", "--plan", "missing.json"), "no plan missing.json"),
        (("plan", "train.py", "-o", "p.json", "--until", "90s"), "after a time"),
        (("plan", "train.py", "-o", "p.json", "--until", "5", "--records", "trees"), "--until ends them"),
        (("plan", "train.py", "-o", "p.json", "--env", "DETAUDIT_MARK=x"), "does not name a variable"),
        (("plan", "train.py", "-o", "no/p.json"), "cannot write"),
        (("plan", "nothing.py", "-o", "p.json"), "script not found"),
    ],
)
def test_bad_input(project: Project, seeded: str, words: tuple[str, ...], said: str) -> None:
    planned(project)
    done = project.detaudit(*words)
    assert said in done.err
    assert done.code in (2, 125)
    assert not list(project.folder.glob(".detaudit/*/audit.json"))


def test_code_that_is_not_that_of_the_plan_is_refused(project: Project, seeded: str) -> None:
    planned(project)
    (project.folder / seeded).write_text("import training\ntraining.train(seed=1)\n")
    done = work(project, 1)
    assert done.code == 2
    assert "train.py" in done.err
    assert not list(project.folder.glob("shared/*"))


def test_a_run_that_cannot_be_stored_is_kept(project: Project, seeded: str) -> None:
    planned(project)
    project.write("shared", "a file\n")
    scratch = project.folder.parent / "scratch"
    scratch.mkdir()
    done = work(project, 1, "--scratch", str(scratch))
    assert done.code not in (0, 1)
    kept = list(scratch.rglob("*.detaudit"))
    assert len(kept) == (1 if "is kept in" in done.err else 0)


def _child(pid: int, name: str) -> psutil.Process:
    """Wait for a process below another one that runs a script and has slept for a moment, and return it."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for process in psutil.Process(pid).children(recursive=True):
            if name in process.cmdline() and process.cpu_times().user > 0:
                time.sleep(0.5)
                return process
        time.sleep(0.05)
    raise AssertionError(f"no process runs {name}")


def test_nothing_is_left_in_the_scratch_folder(project: Project, seeded: str) -> None:
    planned(project)
    scratch = project.folder.parent / "scratch"
    scratch.mkdir()
    assert work(project, 1, "--scratch", str(scratch)).code == 0
    assert os.listdir(scratch) == []


@pytest.mark.full
def test_two_plans_share_a_folder(project: Project, seeded: str) -> None:
    first = planned(project, runs=2)
    assert work(project, 1).code == 0
    shutil.copy(project.folder / "plan.json", project.folder / "first.json")
    planned(project, runs=2)
    for run in (1, 2):
        assert work(project, run).code == 0
    assert "2 plans" in joined(project).err
    done = joined(project, "--plan", "plan.json")
    assert done.json["verdict"] == "deterministic"
    assert [one["kind"] for one in done.json["warnings"]][:1] == ["archives-of-other-plans"]
    assert first["nonce"] not in done.out
    assert Path(project.folder / "first.json").exists()
