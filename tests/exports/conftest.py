"""A real MLflow server on loopback, and audits of real runs."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.process.conftest import Project

STARTS_IN_S = 300

DIFFERS = """
    import random
    import training
    random.seed(0)
    training.train(steps=4)
    noise = random.SystemRandom().random()
    import detaudit
    for step in range(5, 30):
        detaudit.record(loss=1 / step + noise * 1e-9, weights=[noise])
"""
"""Its runs first differ at step 5, in losses that 32 bits do not distinguish."""


@dataclass(frozen=True)
class RealServer:
    """A server of MLflow, and the folder in which it keeps everything."""

    uri: str
    folder: Path


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    folder = tmp_path_factory.mktemp("mlflow")
    uri = f"http://127.0.0.1:{(port := free_port())}"
    options = ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    options += ["--backend-store-uri", f"sqlite:///{folder}/runs.db", "--artifacts-destination", f"{folder}/artifacts"]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", *options],
            cwd=folder, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
        )  # fmt: skip
    try:
        _wait(uri, process, folder / "server.log")
        yield RealServer(uri, folder)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        with contextlib.suppress(ProcessLookupError):  # its workers may take longer
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def _wait(uri: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + STARTS_IN_S
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{uri}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(log.read_text())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder)


@pytest.fixture
def audited(project: Project) -> Project:
    """A project with the results of an audit in ``out``."""
    project.write("train.py", DIFFERS)
    assert project.run("train.py", "--runs", "3", "--out", "out").code == 1
    return project
