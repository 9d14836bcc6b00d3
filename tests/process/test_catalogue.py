"""Every flag with the installed frameworks: its names exist, its values are accepted, and a step trains."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from detaudit.config.flags import Flag, conflict, load_catalogue, with_variables

ROOT = Path(__file__).parents[2]

APPLY = """
import importlib, json, sys
from detaudit.recorder.patches import flags
from detaudit.recorder.process import settings

found = {}
for row in json.loads(sys.stdin.read()):
    importlib.import_module(row["module"])
    try:
        flags.apply(row["order"])
        values = settings.read_settings()
        found[row["id"]] = {name: values[name] for name in row["expect"]}
    except Exception as error:
        found[row["id"]] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""
"""Applies each row as the recorder does, and reads the expected values right afterwards."""

TORCH = """
import torch
w = torch.randn(8, 8, requires_grad=True)
torch.nn.functional.conv1d(torch.randn(2, 8, 9) @ torch.eye(9), w.unsqueeze(2)).sum().backward()
assert w.grad.abs().sum() > 0
"""

TENSORFLOW = """
import keras, numpy, tensorflow as tf
keras.utils.set_random_seed(0)  # With op determinism, unseeded operations raise.
model = keras.Sequential([keras.layers.Dense(2), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(numpy.ones((8, 3)), numpy.ones((8, 1)), verbose=0)
assert tf.function(lambda x: x + 1, jit_compile=True)(tf.ones(3)).numpy().sum() == 6  # XLA reads its flags here.
"""

JAX = """
import jax
assert jax.grad(lambda w: (w @ w).sum())(jax.numpy.ones((3, 3))).sum() == 54
"""

READ = """
import json
from detaudit.recorder.process import settings
print(json.dumps(settings.read_settings()))
"""

CATALOGUE = load_catalogue()


def run(
    code: str, stdin: str = "", flags: list[Flag] | None = None, **changes: str
) -> subprocess.CompletedProcess[str]:
    env = with_variables({**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}, flags or [], 0)
    words = [sys.executable, "-c", code]
    return subprocess.run(
        words, input=stdin, env={**env, **changes}, capture_output=True, text=True, timeout=600, check=False
    )


def last_line(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def missing(*modules: str) -> list[str]:
    return [module for module in modules if importlib.util.find_spec(module) is None]


INSIDE = {
    framework: [flag for flag in CATALOGUE if flag.framework == framework and (flag.call or flag.set)]
    for framework in ("python", "numpy", "torch", "tensorflow", "keras", "jax")
}


@pytest.mark.parametrize(
    "framework",
    [pytest.param(name, marks=[pytest.mark.full] * (name == "keras")) for name, flags in INSIDE.items() if flags],
)
def test_names_exist_and_values_are_accepted(framework: str) -> None:
    if missing(*([] if framework == "python" else [framework])):
        pytest.skip(f"{framework} is not installed here")
    rows = []
    for flag in INSIDE[framework]:
        module, order = flag.order(0).split("\t")
        rows.append({"id": flag.id, "module": module, "order": json.loads(order), "expect": list(flag.expect)})
    found = last_line(run(APPLY, json.dumps(rows)))
    for flag in INSIDE[framework]:
        accepted = found[flag.id] == flag.expect
        # A build for the CPU knows the name, but reports that it lacks the library.
        without = "cpu" not in flag.devices and "has not been compiled with" in str(found[flag.id])
        assert accepted or without, f"{flag.id}: {found[flag.id]}"


def started_with(*frameworks: str) -> list[Flag]:
    """Return the flags that only set variables; of conflicting ones, the first."""
    kept: list[Flag] = []
    for flag in CATALOGUE:
        if flag.framework in frameworks and flag.env and not flag.call and conflict([*kept, flag]) is None:
            kept.append(flag)
    return kept


SHARED = ("python", "system", "openmp", "mkl", "onednn", "numpy", "cuda", "nccl", "horovod")


@pytest.mark.parametrize(
    ("framework", "code"),
    [("torch", TORCH), pytest.param("tensorflow", TENSORFLOW, marks=pytest.mark.full), ("jax", JAX)],
    ids=["torch", "tensorflow", "jax"],
)
def test_a_process_starts_with_every_variable_and_trains_a_step(framework: str, code: str) -> None:
    if missing(framework):
        pytest.skip(f"{framework} is not installed here")
    flags = started_with(*SHARED, framework, *(["keras", "jax"] if framework == "tensorflow" else []))
    assert len(flags) > 20
    values = last_line(run(code + READ, flags=flags))
    for flag in flags:
        assert {name: values[name] for name in flag.expect} == flag.expect, flag.id
    if framework == "torch":
        assert values["torch.get_num_threads()"] == 1


def test_a_process_starts_with_the_variable_of_a_conflicting_flag() -> None:
    small = CATALOGUE.get("cuda-cublas-workspace-small")
    assert run(TORCH, flags=[small]).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("flag", ["--xla_gpu_deterministic_reductions=true", "--xla_gpu_autotune_level=0"])
def test_a_refusal_predicts_what_xla_does(flag: str) -> None:
    if missing("tensorflow"):
        pytest.skip("tensorflow is not installed here")
    from detaudit.launch import refusals
    from detaudit.launch.target import Target

    reason = refusals.xla_refusal(flag, Target(arguments=(), script="train.py", python=sys.executable), {})
    done = run(TENSORFLOW, XLA_FLAGS=flag)
    assert (done.returncode == 0) == (reason is None), done.stderr
    assert reason is None or "Unknown flag" in done.stderr
