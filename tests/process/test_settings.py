"""What was really in force is recorded, and told where the script set it without effect or undid the recipe."""

import json
from importlib.metadata import version

from tests.process.conftest import Project

LATE = """
import os
os.environ["PYTHONHASHSEED"] = "0"
os.environ["OMP_NUM_THREADS"] = "1"
import detaudit
import numpy as np
os.environ["OMP_NUM_THREADS"] = "2"
os.environ["API_TOKEN"] = "a secret"
os.environ["NPY_PROMOTION_STATE"] = str(os.getpid())
np.random.seed(1)
detaudit.record(loss=1.0, weights=[np.ones(3)])
"""


def test_what_is_set_too_late_or_not_alike(project: Project) -> None:
    project.write("train.py", LATE)
    done = project.run("train.py", "--runs", "2", "--out", "results")
    assert done.code == 0
    hash_seed, threads, unlike = done.json["warnings"]
    assert hash_seed.startswith("none: train.py:3 sets PYTHONHASHSEED inside the process, which has no effect on it")
    assert threads.startswith("none: train.py:7 sets OMP_NUM_THREADS after numpy was imported")
    assert unlike.startswith("none: run 2 did not have the settings of run 1: NPY_PROMOTION_STATE ")
    settings = {s["name"]: s for s in done.json["groups"][0]["settings"]}
    assert settings["sys.flags.hash_randomization"]["value"] == 1
    assert settings["OMP_NUM_THREADS"] == {"name": "OMP_NUM_THREADS", "value": "2", "before": BEFORE}
    traces = [path.read_text() for path in (project.folder / "results").rglob("*.jsonl")]
    assert len(traces) == 2
    versions = [json.loads(line)["versions"] for line in traces[0].splitlines() if json.loads(line)["k"] == "settings"]
    assert versions[-1] == {"numpy": version("numpy")}
    assert not any("secret" in text or "API_TOKEN" in text for text in traces)


BEFORE = {"start": None, "numpy": "1"}


UNDOES = """
import random, time
import torch
import training
random.seed(time.time())
torch.use_deterministic_algorithms(False)
torch.set_num_threads(1)
training.train(seed=42)
"""


def test_what_the_script_sets_after_the_recipe(project: Project) -> None:
    project.write("train.py", UNDOES)
    flags = ["python-random-seed", "numpy-seed", "torch-seed", "torch-deterministic-algorithms"]
    done = project.run("train.py", "--runs", "2", *[word for flag in flags for word in ("--flag", flag)])
    assert done.code == 0
    (group,) = done.json["groups"]
    states = {flag["id"]: (flag["state"], flag["detail"]) for flag in group["flags"]}
    assert states["torch-seed"] == ("overridden", "training.py:6 calls torch.manual_seed(42)")
    assert states["python-random-seed"][0] == "overridden"
    assert states["numpy-seed"] == ("applied", "")
    assert states["torch-deterministic-algorithms"] == (
        "overridden",
        "torch.are_deterministic_algorithms_enabled() was False at the end: "
        "train.py:6 calls torch.use_deterministic_algorithms(False)",
    )
    doubts = "\n".join(done.json["warnings"])
    assert (
        "python-random-seed was applied, but train.py:5 calls random.seed() with a seed that follows the clock"
        in doubts
    )
    assert "torch-deterministic-algorithms was applied, but" in doubts
    assert "the flag torch-seed" not in doubts  # another seed, but the same one in every run
    settings = {s["name"]: s["value"] for s in group["settings"]}
    assert settings["torch.get_num_threads()"] == 1
    assert settings["torch.backends.cudnn.benchmark"] is False
    assert settings["torch.get_default_dtype()"] == "torch.float32"
    assert settings["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


KERAS = """
import json, sys
import keras
import tensorflow as tf
if __name__ == "__main__":
    tf.config.threading.set_intra_op_parallelism_threads(1)
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        loss = x * x
    tape.gradient(loss, x)
"""


def test_tensorflow_and_keras(project: Project) -> None:
    project.write("train.py", KERAS)
    done = project.run("train.py", "--runs", "1", "--flag", "tensorflow-op-determinism")
    settings = {s["name"]: s["value"] for s in done.json["groups"][0]["settings"]}
    context = "tensorflow.python.eager.context._context."
    assert settings["tensorflow.python.framework.config.is_op_determinism_enabled()"] is True
    assert (settings[f"{context}_intra_op_parallelism_threads"], settings[f"{context}executing_eagerly()"]) == (1, True)
    assert (settings["keras.config.backend()"], settings["keras.config.floatx()"]) == ("tensorflow", "float32")
    assert {flag["state"] for flag in done.json["groups"][0]["flags"]} == {"applied"}
    assert json.dumps(done.json["warnings"]) == "[]"
