"""The gradients that TensorFlow's first tests of determinism compared: exact on a CPU, measured on a GPU."""

import importlib.util
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.history.gradients import compared

OPERATIONS = ["dense", "sparse", "bias_add", "max-pool"]


def gradients(framework: str, *words: str) -> dict[str, dict[str, Any]]:
    """Return what was found of each operation, in a process of its own."""
    command = [sys.executable, "-m", "tests.history.gradients", "--framework", framework, "--json", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {one["operation"]: one for one in found}


def test_elements_are_compared_by_their_bits() -> None:
    results = iter(np.array(values, "f4") for values in ([1, 2, 4, 0.0], [1, 2, 5, -0.0], [1, 3, 4, 0.0]))
    found = compared("some", lambda: next(results), 3)
    assert (found.mismatched, found.total, found.max_abs) == (2, 4, 1.0)
    assert found.max_rel == pytest.approx(1 / 3)


def assert_exact(found: dict[str, dict[str, Any]]) -> None:
    assert list(found) == OPERATIONS
    assert found["dense"]["total"] == found["sparse"]["total"] == 1_024_000
    assert not [one for one in found.values() if one["mismatched"]]


@pytest.mark.launches
def test_torch_is_exact_on_the_cpu() -> None:
    assert_exact(gradients("torch"))


@pytest.mark.launches
@pytest.mark.slow
def test_tensorflow_is_exact_on_the_cpu() -> None:
    assert_exact(gradients("tensorflow"))


@pytest.mark.launches
@pytest.mark.slow
def test_torch_is_measured_on_a_gpu() -> None:
    torch = pytest.importorskip("torch") if importlib.util.find_spec("torch") else None
    if torch is None or not torch.cuda.is_available():
        pytest.skip("no GPU")
    found = gradients("torch", "--device", "cuda", "--repeats", "50")
    print(json.dumps(found))  # what docs/lab/history.md lacks
    assert list(found) == OPERATIONS
