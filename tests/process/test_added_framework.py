"""A framework is added as CONTRIBUTING.md says, to a copy of the package: then `run`, `bisect` and `trace` know it."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

PEBBLE = '''
"""A framework: tensors on NumPy with gradients, a layer and an optimizer."""

import os

import numpy as np

__version__ = "1.0"


def seed(number=None):
    global _state
    _state = int.from_bytes(os.urandom(8), "little") if number is None else number


def uniform(*shape):
    """Return numbers between -0.5 and 0.5 by a generator of our own."""
    global _state
    numbers = np.empty(shape)
    for place in np.ndindex(*shape):
        _state = (6364136223846793005 * _state + 1442695040888963407) % 2**64
        numbers[place] = _state / 2**64 - 0.5
    return numbers


seed()


class Tensor:
    def __init__(self, data, parents=()):
        self.data, self.grad = np.asarray(data, "f8"), None
        self._parents = parents  # pairs of a tensor and a function from our gradient to what it adds to theirs

    def __matmul__(self, other):
        return Tensor(self.data @ other.data, (
            (self, lambda g: g @ other.data.T), (other, lambda g: self.data.T @ g)))

    def __add__(self, other):
        return Tensor(self.data + other.data, ((self, lambda g: g), (other, lambda g: g.sum(0))))

    def __sub__(self, other):
        return Tensor(self.data - other.data, ((self, lambda g: g), (other, lambda g: -g)))

    def tanh(self):
        data = np.tanh(self.data)
        return Tensor(data, ((self, lambda g: g * (1 - data**2)),))

    def square_mean(self):
        return Tensor((self.data**2).mean(), ((self, lambda g: g * 2 * self.data / self.data.size),))

    def backward(self):
        order, seen = [], set()

        def visit(tensor):
            if id(tensor) not in seen:
                seen.add(id(tensor))
                for parent, _ in tensor._parents:
                    visit(parent)
                order.append(tensor)

        visit(self)
        gradients = {id(self): np.ones_like(self.data)}
        for tensor in reversed(order):
            tensor.grad = gradients[id(tensor)]
            for parent, function in tensor._parents:
                gradients[id(parent)] = gradients.get(id(parent), 0) + function(tensor.grad)


class Linear:
    def __init__(self, inputs, outputs):
        self.weight = Tensor(uniform(inputs, outputs))
        self.bias = Tensor(np.zeros(outputs))

    def __call__(self, x):
        return x @ self.weight + self.bias


class SGD:
    def __init__(self, parameters, rate):
        self.parameters, self.rate = parameters, rate

    def step(self):
        for parameter in self.parameters:
            parameter.data = parameter.data - self.rate * parameter.grad
'''

TRAIN = """
import sys
import threading

import numpy as np
import pebble

def train(width):
    rng = np.random.default_rng(0)
    x, y = pebble.Tensor(rng.normal(size=(16, 3))), pebble.Tensor(rng.normal(size=(16, 1)))
    first, second = pebble.Linear(3, width), pebble.Linear(width, 1)
    optimizer = pebble.SGD([first.weight, first.bias, second.weight, second.bias], 0.1)
    for _ in range(5):
        loss = (second(first(x).tanh()) - y).square_mean()
        loss.backward()
        optimizer.step()

if sys.argv[1:]:
    pebble.seed(int(sys.argv[1]))
train(4)
thread = threading.Thread(target=train, args=(8,))
thread.start()
thread.join()
"""


def parts(guide: str) -> Iterator[tuple[str, str]]:
    """Yield the files that the diff of this section of CONTRIBUTING.md changes, each with the part about it."""
    (section,) = re.findall(rf"^## {guide}$(.*?)^## ", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL)
    (diff,) = re.findall(r"^```diff$(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    for part in diff.split("\n--- ")[1:]:
        heading, _, lines = part.partition("\n+++ b/")[2].partition("\n")
        yield heading, lines


def added(lines: str) -> str:
    return "".join(f"{line[1:]}\n" for line in lines.splitlines() if line.startswith("+"))


class Copy:
    """A copy of the repository with one framework more, and a project that trains with it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files = folder, []
        for name in ("detaudit", "configs"):
            shutil.copytree(ROOT / name, folder / "copy" / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name, lines in parts("Add a framework"):
            path = folder / "copy" / name
            if path.exists():
                before = re.search(r"^@@ (.*)$", lines, re.MULTILINE)
                assert before is not None
                text = path.read_text()
                assert text.count(f"\n{before[1]}\n") == 1
                path.write_text(text.replace(f"\n{before[1]}\n", f"\n{before[1]}\n{added(lines)}"))
            else:
                path.write_text(added(lines))
                self.files.append(name)
        for name, text in (("installed/pebble.py", PEBBLE), ("project/train.py", TRAIN)):
            path = folder / name
            path.parent.mkdir()
            path.write_text(text)

    def detaudit(self, *words: str, code: int) -> dict[str, Any]:
        """Return the report of a command, whose exit status must be ``code``."""
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(self.folder / "copy"), str(self.folder / "installed")])}
        command = [sys.executable, "-m", "detaudit", words[0], "train.py", "--format", "json", *words[1:]]
        done = subprocess.run(
            command, cwd=self.folder / "project", env=env, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        report = json.loads(done.stdout)
        assert isinstance(report, dict)
        return report


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("added"))


def test_a_framework_is_at_most_four_files_and_a_row(copy: Copy) -> None:
    assert len(copy.files) <= 4
    changed = dict(parts("Add a framework")).keys() - {*copy.files}
    assert changed == {"detaudit/wire.py"}


def test_an_added_framework_is_audited(copy: Copy) -> None:
    (group,) = copy.detaudit("run", "--runs", "2", "--stages", "all", code=1)["groups"]
    assert group["first_difference"]["stage"] == "init"
    ranks = group["runs"][0]["ranks"]
    assert [(rank["framework"], rank["steps"]) for rank in ranks] == [("pebble", 5), ("pebble", 5)]
    assert all(rank["final_loss"] is not None for rank in ranks)
    (group,) = copy.detaudit("run", "--runs", "2", "--stages", "all", "--", "0", code=0)["groups"]
    assert group["verdict"] == "deterministic"
    assert {"init", "forward", "backward", "update"} <= {*group["stages"]}


@pytest.mark.slow
def test_its_flag_is_what_a_bisection_needs(copy: Copy) -> None:
    assert copy.detaudit("bisect", code=0)["needed"][0]["flag"] == "pebble-seed"


def test_a_trace_of_it_ends_at_the_stage_and_the_line(copy: Copy) -> None:
    culprit = copy.detaudit("trace", code=1)["culprit"]
    assert (culprit["step"], culprit["stage"], culprit["cause"], culprit["operation"]) == (0, "init", "seed", None)
    assert "os.urandom" in culprit["code"]
