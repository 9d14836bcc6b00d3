"""detaudit bisect as a real process: what it finds, how it is interrupted and goes on, what it refuses."""

import json
import signal
import time
from pathlib import Path

import pytest
import yaml

from tests.process.conftest import Project

QUICK = ("--confirm", "2", "--error-rate", "0.9", "--quiet")

TWO_CAUSES = """
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


def test_two_flags_of_different_causes_and_the_recipe_that_holds_them(project: Project) -> None:
    project.write("train.py", TWO_CAUSES)
    done = project.detaudit("bisect", "train.py", *QUICK, "--out", "found", "--format", "json")
    assert done.code == 0, done.err
    assert {told["flag"] for told in done.json["needed"]} == {"python-hash-seed", "numpy-default-rng"}
    assert all(told["without"]["step"] == 1 for told in done.json["needed"])
    assert all(told["cost"] > 0 for told in done.json["needed"])
    assert done.json["launches"] == sum(len(group["runs"]) for group in done.json["groups"])

    recipe = yaml.safe_load((project.folder / "found" / "detaudit-recipe.yaml").read_text())
    assert set(recipe["flags"]) == {"python-hash-seed", "numpy-default-rng"}
    again = project.run("train.py", "--recipe", "found/detaudit-recipe.yaml", "--runs", "2")
    assert again.json["verdict"] == "deterministic"

    shown = project.detaudit("report", "found")
    assert "* python-hash-seed" in shown.out or "* numpy-default-rng" in shown.out
    assert "PYTHONHASHSEED=0 python train.py" in shown.out


def test_what_no_flag_mends_is_told_with_its_line(project: Project) -> None:
    project.write(
        "train.py",
        """
        import time
        import torch
        from training import train
        torch.manual_seed(time.time_ns() % 2**31)
        train()
        """,
    )
    done = project.detaudit("bisect", "train.py", *QUICK, "--recipe", "seeds", "--out", "found")
    assert done.code == 1
    assert "not-mended" in done.out
    assert "train.py:5: torch.manual_seed() with a seed that follows the clock" in done.out


def test_interrupted_and_resumed(project: Project) -> None:
    project.write("train.py", TWO_CAUSES)
    with project.start("bisect", "train.py", *QUICK, "--out", "found") as running:
        kept = project.folder / "found" / "audit.json"
        wait_for_runs(kept, 3)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "detaudit bisect --resume found" in out
    before = json.loads(kept.read_text())
    finished = [run for group in before["groups"] for run in group["runs"] if run["problem"] != "interrupted"]

    done = project.detaudit("bisect", "--resume", "found", "--format", "json")
    assert done.code == 0, done.err
    assert {told["flag"] for told in done.json["needed"]} == {"python-hash-seed", "numpy-default-rng"}
    digests = [rank["digest"] for group in done.json["groups"][:1] for run in group["runs"] for rank in run["ranks"]]
    assert [rank["digest"] for rank in finished[0]["ranks"]] == digests[:1]


def test_over_variations_interrupted_and_resumed(project: Project) -> None:
    project.write("train.py", "import detaudit\ndetaudit.record(loss=1.0, weights=[hash('a')])\n")
    words = ("--over", "variations", "--vary", "hash-seed", "--vary", "time-zone", "--out", "found")
    with project.start("bisect", "train.py", *words) as running:
        wait_for_runs(project.folder / "found" / "audit.json", 2)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "detaudit bisect --resume found" in out
    done = project.detaudit("bisect", "--resume", "found", "--format", "json")
    assert done.code == 1, done.err
    assert [told["variation"] for told in done.json["matters"]] == ["hash-seed"]
    assert done.json["launches"] == sum(len(list(path.iterdir())) for path in (project.folder / "found/runs").iterdir())


def wait_for_runs(path: Path, runs: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if path.exists() and sum(len(group["runs"]) for group in json.loads(path.read_text())["groups"]) >= runs:
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} never held {runs} runs")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--no-flag", "torch-sede"], "Did you mean 'torch-seed'?"),
        (["--recipe", "none"], "there is no flag to try"),
        (["--error-rate", "1"], "--error-rate"),
        (["--confirm", "1"], "--confirm"),
    ],
)
def test_what_cannot_be_asked_is_refused(project: Project, seeded: str, words: list[str], told: str) -> None:
    done = project.detaudit("bisect", seeded, *words)
    assert done.code == 2
    assert told in done.err


def test_only_a_bisection_can_be_resumed(project: Project, seeded: str) -> None:
    assert project.detaudit("run", seeded, "--runs", "1", "--out", "audit").code == 125
    done = project.detaudit("bisect", "--resume", "audit")
    assert done.code == 2
    assert "holds no bisection" in done.err


def test_a_script_that_fails_has_no_answer(project: Project) -> None:
    project.write("train.py", "raise SystemExit(3)")
    done = project.detaudit("bisect", "train.py", *QUICK)
    assert done.code == 125
    assert "exit status 3" in done.out
