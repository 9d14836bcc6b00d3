"""detaudit bisect as a real process: what it finds, how it is interrupted and resumed, what it refuses."""

import json
import signal
import time
from pathlib import Path

import pytest
import yaml

from tests.process.conftest import Project

QUICK = ("--confirm", "2", "--error-rate", "0.9", "--quiet")

WAITS = """
    import os, time
    open("count", "a").write("x")
    while os.path.exists("hold") and os.path.getsize("count") > 3:
        time.sleep(0.1)
"""
"""Lets three runs pass; the next one waits until it is interrupted."""

TWO_CAUSES = """
    import detaudit
    import numpy as np
    names = {f"name{i}" for i in range(200)}
    order = np.array([float(name[4:]) for name in names]).reshape(50, 4) / 200
    w = np.zeros((4, 1))
    for _ in range(3):
        x = order + np.random.default_rng().standard_normal((50, 4))
        error = x @ w - x.sum(1, keepdims=True)
        w = w - 0.2 * x.T @ error / 50
        detaudit.record(loss=float((error**2).mean()), weights=w)
"""

TWO_CAUSES_IN_TORCH = """
    import numpy as np
    import torch
    torch.manual_seed(0)
    names = {f"name{i}" for i in range(200)}
    order = torch.tensor([float(name[4:]) for name in names]).view(50, 4) / 200
    w = torch.zeros(4, 1, requires_grad=True)
    for _ in range(3):
        x = order + torch.from_numpy(np.random.default_rng().standard_normal((50, 4)).astype("float32"))
        loss = (x @ w - x.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", [TWO_CAUSES, pytest.param(TWO_CAUSES_IN_TORCH, marks=pytest.mark.slow)], ids=["numpy", "torch"]
)
def test_two_flags_of_different_causes_and_the_recipe_that_sets_them(project: Project, text: str) -> None:
    project.write("train.py", text)
    done = project.detaudit("bisect", "train.py", *QUICK, "--out", "found", "--format", "json")
    assert done.code == 0, done.err
    assert done.json["outcome"] == "fixed"
    assert {one["flag"] for one in done.json["needed"]} == {"python-hash-seed", "numpy-default-rng"}
    assert all(one["left_out"]["step"] == 1 for one in done.json["needed"])
    assert all(one["cost"] is None for one in done.json["needed"]), "no runs were made to be timed"
    assert all(one["acts_on"][0]["file"] == "train.py" for one in done.json["needed"])
    assert done.json["total_runs"] == sum(len(group["runs"]) for group in done.json["groups"])

    recipe = yaml.safe_load((project.folder / "found" / "detaudit-recipe.yaml").read_text())
    assert set(recipe["flags"]) == {"python-hash-seed", "numpy-default-rng"}
    again = project.run("train.py", "--recipe", "found/detaudit-recipe.yaml", "--runs", "2")
    assert again.json["verdict"] == "deterministic"

    shown = project.detaudit("report", "found")
    assert "* python-hash-seed" in shown.out or "* numpy-default-rng" in shown.out
    assert "by hand" not in shown.out, "no code was run"


@pytest.mark.slow
def test_runs_at_once_give_the_answer_of_runs_one_after_another(project: Project) -> None:
    project.write("train.py", TWO_CAUSES)
    alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    words = ("bisect", "train.py", *QUICK, "--format", "json")
    two = project.detaudit(*words, "--jobs", "2", "--out", "two", env=alone)
    one = project.detaudit(*words, "--out", "one", env=alone)
    assert two.code == one.code == 0, two.err
    flags, others = ({flag["flag"] for flag in done.json["needed"]} for done in (two, one))
    assert flags == others == {"numpy-default-rng", "python-hash-seed"}
    assert two.json["total_runs"] == one.json["total_runs"]
    counted = sum(len(group["runs"]) for group in two.json["groups"])
    assert len([*(project.folder / "two" / "runs").glob("*/*/stdout.log")]) == counted, "no run ahead is left"


@pytest.mark.slow
def test_a_keras_training_that_lacks_only_a_seed_needs_no_costly_flag(project: Project) -> None:
    project.write(
        "train.py",
        """
        import keras, numpy as np
        x, y = np.ones((64, 8), "f4"), np.ones((64, 1), "f4")
        model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(x, y, batch_size=16, verbose=0, shuffle=False)
        """,
    )
    done = project.detaudit("bisect", "train.py", *QUICK, "--format", "json")
    assert done.code == 0, done.err
    # Keras draws the seeds of its initializers from the random module.
    assert [one["flag"] for one in done.json["needed"]] == ["python-random-seed"]


@pytest.mark.slow
def test_what_no_flag_fixes_is_reported_with_its_line(project: Project) -> None:
    project.write(
        "train.py",
        """
        import time
        import torch
        from torch_training import train
        torch.manual_seed(time.time_ns() % 2**31)
        train()
        """,
    )
    done = project.detaudit("bisect", "train.py", *QUICK, "--recipe", "seeds", "--out", "found")
    assert done.code == 1
    assert "not-fixed: no set of flags tried makes it deterministic (" in done.out
    assert "train.py:5: torch.manual_seed() is seeded from the clock\n" in done.out


def test_interrupted_and_resumed(project: Project) -> None:
    project.write("train.py", WAITS + TWO_CAUSES)
    project.write("hold", "")
    with project.start("bisect", "train.py", *QUICK, "--out", "found") as running:
        kept = project.folder / "found" / "audit.json"
        wait_for_runs(kept, 3)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=120)
    assert running.returncode == 130, err
    assert "detaudit bisect --resume found" in out
    (project.folder / "hold").unlink()
    before = json.loads(kept.read_text())
    interrupted = [{"kind": "interrupted"}]
    finished = [run for group in before["groups"] for run in group["runs"] if run["errors"] != interrupted]
    assert len(finished) == sum(len(group["runs"]) for group in before["groups"]) - 1

    done = project.detaudit("bisect", "--resume", "found", "--format", "json")
    assert done.code == 0, done.err
    assert {one["flag"] for one in done.json["needed"]} == {"python-hash-seed", "numpy-default-rng"}
    digests = [rank["digest"] for group in done.json["groups"][:1] for run in group["runs"] for rank in run["ranks"]]
    assert [rank["digest"] for rank in finished[0]["ranks"]] == digests[:1]


def test_over_variations_interrupted_and_resumed(project: Project) -> None:
    project.write("train.py", WAITS + "    import detaudit\n    detaudit.record(loss=1.0, weights=[hash('a')])\n")
    project.write("hold", "")
    words = ("--over", "variations", "--vary", "hash-seed", "--vary", "time-zone", "--out", "found")
    with project.start("bisect", "train.py", *words) as running:
        wait_for_runs(project.folder / "found" / "audit.json", 3)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=120)
    assert running.returncode == 130, err
    assert "detaudit bisect --resume found" in out
    (project.folder / "hold").unlink()
    done = project.detaudit("bisect", "--resume", "found", "--format", "json")
    assert done.code == 1, done.err
    assert [one["variation"] for one in done.json["sensitive_to"]] == ["hash-seed"]
    folders = (path for path in (project.folder / "found" / "runs").iterdir() if path.is_dir())
    assert done.json["total_runs"] == sum(len(list(folder.iterdir())) for folder in folders)


def wait_for_runs(path: Path, runs: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if path.exists() and sum(len(group["runs"]) for group in json.loads(path.read_text())["groups"]) >= runs:
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} never had {runs} runs")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--no-flag", "torch-sede"], "Did you mean 'torch-seed'?"),
        (["--recipe", "none"], "no flags to try"),
        (["--error-rate", "1"], "--error-rate"),
        (["--confirm", "1"], "--confirm"),
    ],
)
def test_what_cannot_be_asked_is_refused(project: Project, seeded: str, words: list[str], said: str) -> None:
    done = project.detaudit("bisect", seeded, *words)
    assert done.code == 2
    assert said in done.err


def test_only_a_bisection_can_be_resumed(project: Project, seeded: str) -> None:
    assert project.detaudit("run", seeded, "--runs", "1", "--out", "audit").code == 125
    done = project.detaudit("bisect", "--resume", "audit")
    assert done.code == 2
    assert "no bisection in audit" in done.err


def test_a_script_that_fails_has_no_answer(project: Project) -> None:
    project.write("train.py", "raise SystemExit(3)")
    done = project.detaudit("bisect", "train.py", *QUICK)
    assert done.code == 125
    assert "exit status 3" in done.out


LONG = """
    import time
    import detaudit
    import numpy as np
    w = np.zeros(4)
    rng = np.random.default_rng()
    for _ in range(160):
        w = w + rng.standard_normal(4)
        detaudit.record(loss=float(w.sum()), weights=w)
        time.sleep(0.1)
"""


@pytest.mark.slow
def test_the_runs_of_a_training_that_takes_longer_are_ended_early(project: Project) -> None:
    project.write("train.py", LONG)
    done = project.detaudit("bisect", "train.py", *QUICK, "--full", "2", "--costs", "--format", "json")
    assert done.code == 0, done.err
    assert [one["flag"] for one in done.json["needed"]] == ["numpy-default-rng"]
    evidence = done.json["evidence"]
    assert 80 <= evidence["through"] <= 120, "the steps of 10 seconds"
    assert evidence["whole"] == 2
    differing, matching = (group["runs"] for group in done.json["groups"])
    assert [run["status"] for run in differing] == ["ended", "stopped", "stopped", *6 * ["ended"]]
    assert [run["status"] for run in matching].count("ok") == 2
    proof = matching[:-6]
    assert evidence["runs"] == sum((run["through"] or 160) >= evidence["through"] for run in proof)
    (needed,) = done.json["needed"]
    least, most = needed["cost_range"]
    assert 0.8 <= least <= needed["cost"] <= most <= 1.25
    assert needed["cost_runs"] >= [6, 6]
