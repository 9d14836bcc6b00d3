"""What may have trained without a record is recorded after all, or makes the audit inconclusive, with the reason."""

import sys

import pytest

from tests.process.conftest import Project

CHILD = "import torch_training\ntorch_training.train()\n"
ISOLATED = "import sys\nsys.path.insert(0, '.')\n" + CHILD


def test_a_child_with_an_environment_of_its_own_is_recorded(project: Project) -> None:
    project.write("child.py", "import training\ntraining.train()\n")
    project.write(
        "train.py",
        """
        import os, subprocess, sys, training
        training.train(seed=0)
        subprocess.run([sys.executable, "child.py"], env={"PATH": os.environ["PATH"]}, check=True)
        """,
    )
    done = project.run("train.py", "--runs", "2")
    assert done.code == 1, done.out
    assert [rank["steps"] for rank in done.json["groups"][0]["runs"][0]["ranks"]] == [3, 3]


@pytest.mark.full
@pytest.mark.parametrize(
    ("command", "why"),
    [
        (f"{sys.executable} -I child.py", "isolated"),
        (f"env -i {sys.executable} child.py", "environment"),
        (f"PYTHONPATH=. {sys.executable} child.py", "path"),
    ],
)
def test_a_child_without_the_recorder_leaves_the_audit_inconclusive(project: Project, command: str, why: str) -> None:
    project.write("child.py", ISOLATED)
    project.write("child.sh", command + "\n")
    project.write(
        "train.py", "import subprocess, training\ntraining.train(seed=0)\nsubprocess.run(['sh', 'child.sh'])\n"
    )
    done = project.run("train.py", "--runs", "2")
    assert done.code == 125, done.out
    reason = done.json["groups"][0]["reason"]
    assert (reason["kind"], [one["why"] for one in reason["unseen"]]) == ("trainings-unseen", [why])


@pytest.mark.slow
def test_helpers_without_a_framework_do_not_count(project: Project) -> None:
    project.write(
        "train.py",
        """
        import subprocess, sys, torch_training
        sleeper = subprocess.Popen([sys.executable, "-I", "-c", "import json, time; time.sleep(2)"])
        subprocess.run(["env", "-i", sys.executable, "-m", "pip", "--version"], stdout=-1)
        subprocess.run(["sleep", "0.5"], env={})
        torch = torch_training.torch
        list(torch.utils.data.DataLoader(list(range(8)), num_workers=2))
        torch_training.train(seed=0)
        sleeper.wait()
        """,
    )
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0, done.out
    assert done.json["groups"][0]["runs"][0]["unseen"] == []


@pytest.mark.full
def test_a_package_without_an_adapter_beside_a_training_is_inconclusive(project: Project) -> None:
    # As in Surprise, whose algorithms call the method of their base.
    project.write("surprise/__init__.py", "")
    project.write("surprise/prediction_algorithms/__init__.py", "")
    project.write(
        "surprise/prediction_algorithms/algo_base.py",
        """
        class AlgoBase:
            def fit(self, trainset):
                self.trainset = trainset
        class SVD(AlgoBase):
            pass
        """,
    )
    script = "import torch_training\nfrom surprise.prediction_algorithms import algo_base\n"
    script += "torch_training.train(seed=0)\n"
    project.write("train.py", script)
    assert project.run("train.py", "--runs", "2").code == 0  # it was imported only
    project.write("train.py", script + "[algo_base.SVD().fit([1.0]) for _ in range(3)]\n")
    done = project.run("train.py", "--runs", "2")
    assert done.code == 125, done.out
    reason = done.json["groups"][0]["reason"]
    assert (reason["kind"], [one["call"] for one in reason["unseen"]]) == (
        "trainings-unseen",
        ["surprise.AlgoBase.fit"],
    )
