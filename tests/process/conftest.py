"""What the process tests share: a working directory with scripts, and the real command line."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PLAIN = """
    import random
    import detaudit

    def train(steps=3, seed=None):
        if seed is not None:
            random.seed(seed)
        w = [random.gauss(0, 1) for _ in range(8)]
        for _ in range(steps):
            x = [random.gauss(0, 1) for _ in w]
            error = sum(a * b for a, b in zip(x, w)) - sum(x)
            w = [a - 0.1 * error * b for a, b in zip(w, x)]
            detaudit.record(loss=error**2, weights=w)
        return w
"""
"""A training loop without a framework: what a process does as a process needs none, and torch takes seconds to load."""

TORCH = """
    import torch

    def train(steps=3, seed=None):
        if seed is not None:
            torch.manual_seed(seed)
        w = torch.randn(8, 1, requires_grad=True)
        for _ in range(steps):
            x = torch.randn(32, 8)
            loss = (x @ w - x.sum(1, keepdim=True)).pow(2).mean()
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
                w.grad = None
        return w.detach()
"""
"""A training loop without torch.optim, whose import takes longer than all else here."""


FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PROMISED = set(re.findall(r"`(tests/process/\S+?)::(\w+)`", (ROOT / "docs" / "promises.md").read_text()))
"""The tests that hold a line of docs/promises.md."""

OTHERS = ("full", "install", "slow")
"""Markers of tests that `make test` leaves out anyway."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to `make test-full` what no promise names: `make test` starts real processes for each promise alone."""
    for item in items:
        if FOLDER in item.path.parents and not any(map(item.get_closest_marker, OTHERS)):
            name = getattr(item, "originalname", item.name)
            if (item.path.relative_to(ROOT).as_posix(), name) not in PROMISED:
                item.add_marker("full")


@dataclass(frozen=True)
class Finished:
    """One finished detaudit."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        result = json.loads(self.out)
        assert isinstance(result, dict)
        return result


class Project:
    """A user's working directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("training.py", PLAIN)
        self.write("torch_training.py", TORCH)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "detaudit", *words]

    def detaudit(self, *words: str, env: dict[str, str] | None = None, **options: Any) -> Finished:
        done = subprocess.run(
            self.command(*words),
            cwd=options.pop("cwd", self.folder),
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=600,
            stdin=subprocess.DEVNULL,
            check=False,
            **options,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Finished(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start detaudit, to be interrupted."""
        return subprocess.Popen(
            self.command(*words),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A shell's background job starts with SIGINT ignored, and a test run may be one.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run(self, *words: str, **options: Any) -> Finished:
        """Run ``detaudit run`` with JSON as its result."""
        return self.detaudit("run", "--format", "json", *words, **options)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder)


@pytest.fixture
def seeded(project: Project) -> str:
    """A deterministic training script."""
    project.write("train.py", "import training\nprint(sum(training.train(seed=0)))\n")
    return "train.py"


@pytest.fixture
def unseeded(project: Project) -> str:
    """A nondeterministic training script."""
    project.write("train.py", "import training\ntraining.train()\n")
    return "train.py"
