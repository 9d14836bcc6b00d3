"""Runs on real servers of ssh on loopback, one of which is killed in the middle."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.process.conftest import Project
from tests.remote.engines.hosts import is_here, servers
from tests.remote.engines.jobs import command_of
from tests.words import same

pytestmark = [pytest.mark.engines, pytest.mark.skipif(not is_here(), reason="sshd is not installed")]

LONG = "import time, training\ntraining.train(seed=0)\ntime.sleep(3)\n"


@pytest.fixture(autouse=True)
def launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests start processes."""


@pytest.mark.launches
def test_two_servers_and_one_that_is_killed(tmp_path: Path) -> None:
    folder, work = tmp_path / "servers", tmp_path / "project"
    folder.mkdir()
    work.mkdir()
    project = Project(work)
    project.write("train.py", LONG)
    environment = {**os.environ, "DETAUDIT_SSH_COMMAND": f"ssh -F {folder}/config"}
    with servers(folder, ("one", "two")) as running:
        words = ("run", "train.py", "--runs", "4", "--engine", "ssh:one,two", "--python", sys.executable)
        audit = subprocess.Popen(
            project.command(*words),
            cwd=work,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        sessions = _sessions(running["one"].pid)
        for process in (*sessions, psutil.Process(running["one"].pid)):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        out, err = audit.communicate(timeout=300)
    assert f"deterministic: {same(4)}" in out, out + err
    assert audit.returncode == 0


def _sessions(server: int) -> list[psutil.Process]:
    """Wait until a server has a session with a job in it, and return its processes."""
    for _ in range(600):
        found = psutil.Process(server).children(recursive=True)
        if any("detaudit.remote.worker" in " ".join(command_of(one)) for one in found):
            return found
        psutil.wait_procs([psutil.Process(server)], timeout=0.1)
    raise AssertionError("no job came")
