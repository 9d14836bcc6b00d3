"""Bisection over variations with real runs: what changes a training is named, and what does not is not."""

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


@pytest.mark.parametrize("variation", SCRIPTS)
def test_the_variation_that_matters_is_named_alone(project: Project, variation: str) -> None:
    script = project.write("train.py", SCRIPTS[variation])
    script.write_text(script.read_text() + "import detaudit\ndetaudit.record(loss=1.0, weights=result)\n")
    done = bisect(project, "train.py", *(w for name in (*SCRIPTS, "hash-seed", "addresses") for w in ("--vary", name)))
    assert done.code == 1
    (told,) = done.json["matters"]
    assert (told["variation"], told["beside"]) == (variation, [])
    assert told["seen"]["step"] == 1
    assert sorted(done.json["no_matter"]) == sorted({*SCRIPTS, "hash-seed", "addresses"} - {variation})
    assert done.json["warnings"] == []


def test_the_order_of_a_set_is_the_hash_seeds_doing(project: Project) -> None:
    done = bisect(project, copied(project, "python_set_order.py"), "--vary", "hash-seed", "--vary", "memory-fill")
    assert done.code == 1
    (told,) = done.json["matters"]
    assert (told["variation"], told["seen"]["step"], told["seen"]["stage"]) == ("hash-seed", 1, "batch")
    assert told["lines"][0].startswith("python_set_order.py:12: iterates over a set")
    assert told["flags"] == ["python-hash-seed"]


def test_nothing_matters_where_the_set_is_sorted(project: Project) -> None:
    done = bisect(project, copied(project, "python_sorted_set.py"), "--vary", "hash-seed", "--vary", "addresses")
    assert done.code == 0
    assert (done.json["answer"], done.json["matters"]) == ("nothing-matters", [])
    assert done.json["groups"][1]["varied"][0]["values"][:2] == ["PYTHONHASHSEED=0", "PYTHONHASHSEED=1"]


def test_all_that_must_not_matter_varies_where_nothing_is_named(project: Project) -> None:
    project.write("train.py", "import detaudit\ndetaudit.record(loss=1.0, weights=[0.5])\n")
    done = bisect(project, "train.py")
    assert (done.code, done.json["answer"]) == (0, "nothing-matters")
    assert {"hash-seed", "clock", "background-load"} < set(done.json["controls"])
    assert "threads" not in done.json["controls"]
    assert done.json["left_out"]["working-directory"] == "it needs --isolate"


def test_a_control_that_differs(project: Project, unseeded: str) -> None:
    done = bisect(project, unseeded, "--vary", "hash-seed")
    assert (done.code, done.json["answer"], done.json["launches"]) == (125, "control-differs", 2)
    assert done.json["next_steps"][0]["command"] == "detaudit bisect train.py"


def test_a_folder_of_another_name_and_a_file_named_as_the_user_knows_it(project: Project) -> None:
    text = "import os, time, detaudit\ndetaudit.record(loss=1.0, weights=[len(os.getcwd())])\n"
    project.write("train.py", text + "import random\nrandom.seed(time.time_ns())\n")
    subprocess.run(["git", "init", "-q", str(project.folder)], check=True)
    done = project.run("train.py", "--runs", "2", "--vary", "working-directory")
    (group,) = done.json["groups"]
    assert done.code == 1
    assert group["varied"][0]["values"] == ["as it is", "in a copy called a-folder-of-another-name"]
    assert group["sources"][0]["file"] == "train.py"
    assert not (project.folder / "a-folder-of-another-name").exists()


def test_what_cannot_be_asked_for(project: Project, seeded: str) -> None:
    wrong = project.run(seeded, "--vary", "hash-sed")
    assert wrong.code == 2
    assert "hash-seed" in wrong.err
    without = project.detaudit("bisect", seeded, "--vary", "hash-seed")
    assert (without.code, "--over variations" in without.err) == (2, True)
    held = bisect(project, seeded, "--vary", "hash-seed", "--recipe", "seeds")
    assert (held.code, "holds all that was to vary still" in held.err) == (2, True)
    alternatives = bisect(project, seeded, "--alternatives")
    assert (alternatives.code, "--alternatives is for a bisection over flags" in alternatives.err) == (2, True)
