"""Trainings that would go on for ever, ended after a step: ``--until``."""

import json
import subprocess
import sys
import time

import psutil
import pytest

from tests.process.conftest import Project
from tests.words import same

ENDLESS = """
    import itertools, os, sys, time
    import torch
    torch.manual_seed(1)

    def train(seed=0, model=None, after=lambda step: None):
        torch.manual_seed(seed)
        model = torch.nn.Linear(4, 1) if model is None else model
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for step in itertools.count(1):
            optimizer.zero_grad()
            model(torch.randn(8, 4)).pow(2).mean().backward()
            optimizer.step()
            after(step)
            time.sleep(0.002)
"""

RANKS = (
    ENDLESS
    + """
    torch.distributed.init_process_group("gloo")
    train(model=torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1)))
"""
)

SPAWNED = (
    ENDLESS
    + """
    def work(rank):
        train(seed=rank)

    if __name__ == "__main__":
        torch.multiprocessing.spawn(work, nprocs=2)
"""
)

KERAS = """
    import itertools
    import numpy as np
    import keras

    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    def batches():
        while True:
            yield np.ones((8, 4), "float32"), np.ones((8, 1), "float32")

    model.fit(batches(), steps_per_epoch=10**9, verbose=0)
"""


@pytest.mark.slow
def test_a_training_is_ended_after_a_step(project: Project) -> None:
    project.write("train.py", ENDLESS + '    import atexit; atexit.register(open, "left", "w")\n    train()\n')
    done = project.detaudit("run", "train.py", "--runs", "2", "--until", "40")
    assert done.code == 0, done.out
    assert (
        f"deterministic through step 40, where every run was ended: {same()}. Nothing is known of later steps"
    ) in done.out
    assert "SUM OF WEIGHTS" not in done.out
    assert "detaudit run train.py --runs 2 --until 40" in done.out
    assert not (project.folder / "left").exists()  # it did not end by itself
    assert not [one for one in psutil.process_iter(["cmdline"]) if str(project.folder) in (one.info["cmdline"] or [])]


@pytest.mark.full
def test_a_difference_before_the_step_is_found_and_one_after_it_is_not(project: Project) -> None:
    late = """
    train(after=lambda step: torch.seed() if step == 60 else None)
"""
    project.write("train.py", ENDLESS + late)
    before = project.run("train.py", "--runs", "2", "--until", "50")
    assert before.code == 0, before.out
    beyond = project.run("train.py", "--runs", "2", "--until", "80")
    assert beyond.code == 1
    assert beyond.json["groups"][0]["first_difference"]["step"] == 61


def test_the_first_run_sets_the_step(project: Project) -> None:
    project.write("train.py", ENDLESS + "    train()\n")
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    long_enough = 2 + round(2 * (time.monotonic() - started))  # for the first step, also on a busy machine
    done = project.run("train.py", "--runs", "2", "--until", f"{long_enough}s")
    assert time.monotonic() - started < 60 + 4 * long_enough
    assert done.code == 0, done.out
    (group,) = done.json["groups"]
    assert group["through"] > 1
    assert [run["through"] for run in group["runs"]] == [group["through"]] * 2


@pytest.mark.slow
def test_what_the_script_overrides_is_known_though_it_never_ends(project: Project) -> None:
    project.write("train.py", ENDLESS + "    torch.use_deterministic_algorithms(False)\n    train()\n")
    done = project.run("train.py", "--runs", "2", "--until", "10", "--flag", "torch-deterministic-algorithms")
    assert done.code == 0, done.out
    flags = {flag["id"]: flag["state"] for flag in done.json["groups"][0]["flags"]}
    assert flags["torch-deterministic-algorithms"] == "overridden"


@pytest.mark.slow
def test_large_weights_are_digested_at_the_last_step(project: Project) -> None:
    project.write("train.py", ENDLESS + "    train(model=torch.nn.Sequential(torch.nn.Linear(4, 2 * 10**7)))\n")
    done = project.run("train.py", "--runs", "2", "--until", "3")
    assert done.code == 0, done.out
    (group,) = done.json["groups"]
    assert (group["through"], group["weights_sampled"]) == (3, False)


@pytest.mark.full
def test_each_rank_does_the_step(project: Project) -> None:
    project.write("train.py", RANKS)
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py")
    done = project.run("--runs", "2", "--until", "20", "--", *launcher)
    assert done.code == 0, done.out
    (group,) = done.json["groups"]
    assert [[rank["steps"] for rank in run["ranks"]] for run in group["runs"]] == [[20, 20]] * 2
    assert group["replicas"] == {"ranks": 2, "run": 1, "first_difference": None}


@pytest.mark.slow
def test_each_spawned_child_does_the_step(project: Project) -> None:
    project.write("train.py", SPAWNED)
    done = project.run("train.py", "--runs", "3", "--until", "1")
    assert done.code == 0, done.out
    assert [len(run["ranks"]) for run in done.json["groups"][0]["runs"]] == [2, 2, 2]


@pytest.mark.slow
def test_a_compiled_step(project: Project) -> None:
    project.write("train.py", ENDLESS + '    train(model=torch.compile(torch.nn.Linear(4, 1), backend="eager"))\n')
    done = project.run("train.py", "--runs", "2", "--until", "30")
    assert done.code == 0, done.out
    assert done.json["groups"][0]["through"] == 30


@pytest.mark.slow
def test_a_keras_fit(project: Project) -> None:
    project.write("train.py", KERAS)
    done = project.run("train.py", "--runs", "2", "--until", "25")
    assert done.code == 0, done.out
    assert done.json["groups"][0]["through"] == 25


@pytest.mark.slow
def test_a_bisection_ends_its_runs(project: Project) -> None:
    project.write("train.py", ENDLESS.replace("torch.manual_seed", "id") + "    train()\n")
    few = ("--confirm", "2", "--error-rate", "0.9")
    done = project.detaudit("bisect", "train.py", "--format", "json", "--until", "5", *few)
    assert done.code == 0, done.out
    assert [one["flag"] for one in done.json["needed"]] == ["torch-seed"]
    assert {group["through"] for group in done.json["groups"]} == {5}


@pytest.mark.slow
def test_a_check_and_a_comparison(project: Project) -> None:
    project.write("train.py", ENDLESS + "    train()\n")
    config = '[tool.detaudit.audits.small]\ncommand = "train.py"\nruns = 2\nuntil = {}\n'
    (project.folder / "pyproject.toml").write_text(config.format(12))
    assert project.detaudit("check", "--update").code == 0
    (project.folder / "pyproject.toml").write_text(config.format('"20"'))
    done = project.detaudit("check")
    assert done.code == 0, done.out
    assert "bit-identical through step 12, the last one compared" in done.out
    folders = sorted((project.folder / ".detaudit").glob("*/small"))
    compared = project.detaudit("compare", str(folders[0]), str(folders[1]))
    assert compared.code == 0, compared.err
    assert "bit-identical through step 12" in compared.out
    shorter = project.detaudit("compare", str(folders[0]), str(folders[1]), "--until", "3", "--format", "json")
    assert json.loads(shorter.out)["steps_compared"] == 3


@pytest.mark.parametrize("option", [("--artifact", "model.pt"), ("--loss-pattern", "loss (.*)")])
def test_what_a_run_that_is_ended_does_not_leave_is_refused(project: Project, option: tuple[str, str]) -> None:
    project.write("train.py", "pass\n")
    done = project.detaudit("run", "train.py", "--until", "3", *option)
    assert done.code == 2
    assert f"--until cannot be combined with {option[0]}" in done.err


@pytest.mark.parametrize(
    ("until", "more", "expected"),
    [
        ('"soon"', "", "until: 'soon' is neither a step, such as 400, nor a time, such as 90s, 15m or 2h"),
        ("0", "", "until"),
        ("4", 'resume = "train.py"\n', "until cannot be combined with resume"),
        ("4", 'artifacts = ["model.pt"]\n', "--until cannot be combined with --artifact"),
    ],
)
def test_a_configuration_that_cannot_be(project: Project, until: str, more: str, expected: str) -> None:
    project.write("train.py", "pass\n")
    text = f'[tool.detaudit.audits.small]\ncommand = "train.py"\nuntil = {until}\n{more}'
    (project.folder / "pyproject.toml").write_text(text)
    done = project.detaudit("check")
    assert done.code == 2
    assert expected in done.err


@pytest.mark.slow
def test_the_mark_of_pytest(project: Project) -> None:
    test = """
    import pytest

    @pytest.mark.deterministic(runs=2, until=6)
    def test_train():
        train()
"""
    project.write("test_train.py", ENDLESS + test)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_train.py"]
    done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    project.write("test_train.py", ENDLESS + test.replace("6", '"soon"'))
    wrong = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, check=False)
    assert "'soon' is neither a step, such as 400, nor a time" in wrong.stdout
