"""Effective settings are recorded, and reported if the script set them too late or overrode the recipe."""

import json
from importlib.metadata import version

import pytest

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


def test_a_number_of_threads_that_a_library_sets_is_no_line_of_the_script(project: Project) -> None:
    project.write("site-packages/launcher.py", "import os\ndef start():\n    os.environ['OMP_NUM_THREADS'] = '2'\n")
    project.write(
        "train.py",
        """
        import os, sys
        sys.path.append(os.path.abspath("site-packages"))
        import numpy, launcher, training
        launcher.start()
        training.train(seed=0)
        os.environ.update(OMP_NUM_THREADS="4")
        """,
    )
    warnings = project.run("train.py", "--runs", "2").json["warnings"]
    assert [(one["variable"], one["line"]) for one in warnings] == [("OMP_NUM_THREADS", 7)]


def test_settings_that_come_too_late_or_differ_between_runs(project: Project) -> None:
    project.write("train.py", LATE)
    done = project.run("train.py", "--runs", "2", "--out", "results")
    assert done.code == 0
    hash_seed, threads, differing = done.json["warnings"]
    assert hash_seed == about("set-too-late", variable="PYTHONHASHSEED", file="train.py", line=3, module="")
    assert threads == about("set-too-late", variable="OMP_NUM_THREADS", file="train.py", line=7, module="numpy")
    ((name, value, before),) = differing["settings"]
    assert (name, value.isdecimal(), before.isdecimal(), value == before) == ("NPY_PROMOTION_STATE", True, True, False)
    assert differing == about("settings-differ", run=2, first=1, settings=differing["settings"], more=0)
    shown = project.detaudit("report", "results").out.splitlines()
    late = "warning: none: train.py:{} sets {} too late: {}"
    hint = "it only takes effect before Python starts (use --flag python-hash-seed)"
    assert late.format(3, "PYTHONHASHSEED", hint) in shown
    assert late.format(7, "OMP_NUM_THREADS", "numpy reads it only at import") in shown
    ran = f"ran with different settings than run 1: NPY_PROMOTION_STATE={value} (run 1: {before})"
    assert f"warning: none run 2: {ran}" in shown
    settings = {s["name"]: s for s in done.json["groups"][0]["settings"]}
    assert settings["sys.flags.hash_randomization"]["value"] == 1
    assert settings["OMP_NUM_THREADS"] == {"name": "OMP_NUM_THREADS", "value": "2", "before": BEFORE}
    logs = [path.read_text() for path in (project.folder / "results").rglob("*.jsonl")]
    assert len(logs) == 2
    versions = [json.loads(line)["versions"] for line in logs[0].splitlines() if json.loads(line)["k"] == "settings"]
    assert versions[-1] == {"numpy": version("numpy")}
    assert not any("secret" in text or "API_TOKEN" in text for text in logs)


BEFORE = {"start": None, "numpy": "1"}


def about(kind: str, **fields: object) -> dict[str, object]:
    """Return a warning about recipe none as it is in audit.json."""
    return {"kind": kind, "audit": "", "recipe": "none", "run": 0, "recording": "", **fields}


def call(file: str, line: int, name: str, value: str) -> dict[str, object]:
    return {"file": file, "line": line, "call": name, "value": value}


UNDOES = """
import random, time
import torch
import torch_training
random.seed(time.time())
torch.use_deterministic_algorithms(False)
torch.set_num_threads(1)
torch_training.train(seed=42)
"""


@pytest.mark.slow
def test_flags_that_the_script_overrides(project: Project) -> None:
    project.write("train.py", UNDOES)
    flags = ["python-random-seed", "numpy-seed", "torch-seed", "torch-deterministic-algorithms"]
    done = project.run("train.py", "--runs", "2", *[word for flag in flags for word in ("--flag", flag)])
    assert done.code == 0
    (group,) = done.json["groups"]
    assert {flag["reason"] for flag in group["flags"]} == {None}
    states = {flag["id"]: (flag["state"], flag["override"]) for flag in group["flags"]}
    seed = {"at": "seed", "name": "", "value": ""}
    torch_call = call("torch_training.py", 6, "torch.manual_seed", "42")
    assert states["torch-seed"] == ("overridden", {**seed, "call": torch_call, "differs": None})
    state, clock = states["python-random-seed"]
    assert state == "overridden"
    python_call = call("train.py", 5, "random.seed", clock["call"]["value"])
    assert clock == {**seed, "call": python_call, "differs": "clock"}
    assert states["numpy-seed"] == ("applied", None)
    state, switch = states["torch-deterministic-algorithms"]
    assert state == "overridden"
    assert switch == {
        "at": "end",
        "name": "torch.are_deterministic_algorithms_enabled()",
        "value": "False",
        "call": call("train.py", 6, "torch.use_deterministic_algorithms", "False"),
        "differs": None,
    }
    # torch-seed casts no doubt on the recipe: the script sets a different seed, but the same one in every run.
    recipe = group["recipe"]["name"]
    assert recipe == f"none +{' +'.join(sorted(flags))}"
    assert done.json["warnings"] == [
        about("flag-overridden", recipe=recipe, flag="python-random-seed", override=clock),
        about("flag-overridden", recipe=recipe, flag="torch-deterministic-algorithms", override=switch),
    ]
    shown = project.detaudit("report", str(next((project.folder / ".detaudit").glob("*/audit.json")).parent)).out
    undone = "train.py:5 calls random.seed() with a seed from the clock"
    assert f"warning: {recipe}: flag python-random-seed was overridden: {undone}\n" in shown
    undone = (
        "torch.are_deterministic_algorithms_enabled() was False at the end: "
        "train.py:6 calls torch.use_deterministic_algorithms(False)"
    )
    assert f"warning: {recipe}: flag torch-deterministic-algorithms was overridden: {undone}\n" in shown
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


@pytest.mark.slow
def test_tensorflow_and_keras(project: Project) -> None:
    project.write("train.py", KERAS)
    done = project.run("train.py", "--runs", "1", "--flag", "tensorflow-op-determinism")
    settings = {s["name"]: s["value"] for s in done.json["groups"][0]["settings"]}
    context = "tensorflow.python.eager.context._context."
    assert settings["tensorflow.python.framework.config.is_op_determinism_enabled()"] is True
    assert (settings[f"{context}_intra_op_parallelism_threads"], settings[f"{context}executing_eagerly()"]) == (1, True)
    assert (settings["keras.config.backend()"], settings["keras.config.floatx()"]) == ("tensorflow", "float32")
    assert {flag["state"] for flag in done.json["groups"][0]["flags"]} == {"applied"}
    assert done.json["warnings"] == []
