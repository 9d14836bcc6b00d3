"""The slow suite: what people train with, from PyPI. `make test-ecosystem` installs it and runs it."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from tests.process.conftest import Project, project

__all__ = ["project"]

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


@dataclass(frozen=True)
class Printed:
    """The last line that a training script printed: its own count of steps, sum of weights and digest of them."""

    line: str

    @property
    def steps(self) -> int:
        return int(self.line.split()[0])

    @property
    def sum(self) -> float:
        return float(self.line.split()[1])


def bare(project: Project, *argv: str) -> Printed:
    """Run a script without detaudit and return what it printed last."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, *argv]
    done = subprocess.run(command, cwd=project.folder, env=env, capture_output=True, text=True, check=True)
    return Printed(done.stdout.splitlines()[-1])


def audited(project: Project, *words: str, code: int) -> dict[str, Any]:
    """Audit two runs, which must end with this exit status, and return the only group."""
    out = project.folder / "results"
    shutil.rmtree(out, ignore_errors=True)  # of an earlier audit in the same test
    whole = () if "--until" in words else ("--full",)  # compiling may take longer than a first verdict
    done = project.run("--runs", "2", "--out", str(out), *whole, *words)
    assert done.code == code, done.out + done.err
    (group,) = done.json["groups"]
    assert isinstance(group, dict)
    return group


def printed(project: Project, run: int = 1) -> Printed:
    """Return what a run of the last audit printed last."""
    log = project.folder / "results" / "runs" / "none" / str(run) / "stdout.log"
    return Printed(log.read_text().splitlines()[-1])


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
