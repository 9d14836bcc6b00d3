"""Bisection over variations with real runs: only variations that change a training are reported."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.process.conftest import Finished, Project

CORPUS = Path(__file__).parents[1] / "corpus" / "scripts"
QUICK = ("--confirm", "2", "--error-rate", "0.9")

SCRIPTS = {
    "listing-order": """
        import os
        os.makedirs("data", exist_ok=True)
        for name in "abcde":
            open(f"data/{name}", "w").close()
        result = [place * ord(name) for place, name in enumerate(os.listdir("data"))]
    """,
    "clock": """
        import datetime
        result = [datetime.datetime.now(datetime.timezone.utc).toordinal()]
    """,
    "memory-fill": """
        import numpy as np
        result = [np.nan_to_num(np.empty(100_000, np.float32), nan=1, posinf=1, neginf=1)]
    """,
    "time-zone": """
        import time
        result = [time.localtime(1_000_000_000).tm_hour]
    """,
}


def bisect(project: Project, script: str, *words: str, **options: Any) -> Finished:
    return project.detaudit("bisect", "--over", "variations", "--format", "json", *QUICK, script, *words, **options)


def copied(project: Project, name: str) -> str:
    for script in (name, "final.py"):
        shutil.copy(CORPUS / script, project.folder)
    return name


@pytest.mark.slow
@pytest.mark.parametrize("variation", SCRIPTS)
def test_only_the_variation_that_changes_the_training_is_named(project: Project, variation: str) -> None:
    script = project.write("train.py", SCRIPTS[variation])
    script.write_text(script.read_text() + "import detaudit\ndetaudit.record(loss=1.0, weights=result)\n")
    done = bisect(project, "train.py", *(w for name in (*SCRIPTS, "hash-seed", "addresses") for w in ("--vary", name)))
    assert done.code == 1
    (found,) = done.json["sensitive_to"]
    assert (found["variation"], found["together_with"]) == (variation, [])
    assert found["example"]["step"] == 1
    assert sorted(done.json["no_effect"]) == sorted({*SCRIPTS, "hash-seed", "addresses"} - {variation})
    assert done.json["warnings"] == []


@pytest.mark.slow
def test_the_order_of_a_set_depends_on_the_hash_seed(project: Project) -> None:
    done = bisect(project, copied(project, "python_set_order.py"), "--vary", "hash-seed", "--vary", "memory-fill")
    assert done.code == 1
    (found,) = done.json["sensitive_to"]
    assert (found["variation"], found["example"]["step"], found["example"]["stage"]) == ("hash-seed", 1, "batch")
    line = {"file": "python_set_order.py", "line": 12, "kind": "set-order", "call": "", "generators": []}
    assert found["suspects"][0] == {**line, "suspect": True, "condition": "", "takes": []}
    assert found["flags"] == ["python-hash-seed"]


@pytest.mark.slow
def test_a_sorted_set_is_robust(project: Project) -> None:
    done = bisect(project, copied(project, "python_sorted_set.py"), "--vary", "hash-seed", "--vary", "addresses")
    assert done.code == 0
    assert (done.json["outcome"], done.json["sensitive_to"]) == ("robust", [])
    assert done.json["groups"][1]["varied"][0]["values"][:2] == ["PYTHONHASHSEED=0", "PYTHONHASHSEED=1"]


@pytest.mark.slow
def test_all_standard_variations_are_active_by_default(project: Project) -> None:
    project.write("train.py", "import detaudit\ndetaudit.record(loss=1.0, weights=[0.5])\n")
    done = bisect(project, "train.py")
    assert (done.code, done.json["outcome"]) == (0, "robust")
    assert {"hash-seed", "clock", "background-load"} < set(done.json["controls"])
    assert "threads" not in done.json["controls"]
    assert done.json["not_varied"]["working-directory"] == {"kind": "needs-isolate"}


def test_a_control_that_differs(project: Project, unseeded: str) -> None:
    done = bisect(project, unseeded, "--vary", "hash-seed")
    assert (done.code, done.json["outcome"], done.json["total_runs"]) == (125, "control-differs", 2)
    assert done.json["next_steps"][0]["command"] == "detaudit bisect train.py"


def test_a_working_directory_of_a_different_name_keeps_the_names_of_files(project: Project) -> None:
    text = "import os, time, detaudit\ndetaudit.record(loss=1.0, weights=[len(os.getcwd())])\n"
    project.write("train.py", text + "import random\nrandom.seed(time.time_ns())\n")
    subprocess.run(["git", "init", "-q", str(project.folder)], check=True)
    done = project.run("train.py", "--runs", "2", "--vary", "working-directory")
    (group,) = done.json["groups"]
    assert done.code == 1
    assert group["varied"][0]["values"] == ["unchanged", "in a copy named a-folder-with-a-different-name"]
    assert group["sources"][0]["file"] == "train.py"
    assert not (project.folder / "a-folder-with-a-different-name").exists()


def test_invalid_requests_are_refused(project: Project, seeded: str) -> None:
    wrong = project.run(seeded, "--vary", "hash-sed")
    assert wrong.code == 2
    assert "hash-seed" in wrong.err
    without = project.detaudit("bisect", seeded, "--vary", "hash-seed")
    assert (without.code, "--over variations" in without.err) == (2, True)
    pinned = bisect(project, seeded, "--vary", "hash-seed", "--recipe", "seeds")
    assert (pinned.code, "pins every requested variation" in pinned.err) == (2, True)
    alternatives = bisect(project, seeded, "--alternatives")
    assert (alternatives.code, "--alternatives does not work with --over variations" in alternatives.err) == (2, True)
    costs = bisect(project, seeded, "--costs")
    assert (costs.code, "--costs does not work with --over variations" in costs.err) == (2, True)


def test_dates_that_a_script_writes_are_no_results_if_the_clock_is_moved(project: Project) -> None:
    project.write(
        "train.py",
        """
        import datetime, json, os, time
        import detaudit
        detaudit.record(loss=0.5, weights=[1.0])
        now, form = datetime.datetime.now(), "%Y-%m-%d_%H-%M-%S"
        print("started", now, time.strftime("%H:%M:%S"), time.ctime(), now.strftime("%d.%m.%Y %H:%M"), time.time())
        os.makedirs("runs/" + now.strftime(form))
        with open(f"runs/{now.strftime(form)}/{int(time.time())}.json", "w") as file:
            json.dump({"a": time.time(), "b": int(1000 * time.time()), "day": str(now.date()), "end": str(now)}, file)
        """,
    )
    done = project.run("train.py", "--runs", "4", "--vary", "clock")
    assert (done.code, done.json["groups"][0]["verdict"]) == (0, "deterministic")
