"""Every thread, program and fork that a process starts is counted."""

import subprocess
import sys
from pathlib import Path

import pytest

from detaudit import wire
from detaudit.launch.plan import BOOTSTRAP
from detaudit.runs.log import read_run

SCRIPT = """
import os, subprocess, sys, threading
class Mine(threading.Thread):
    def run(self):
        pass
for kind in (threading.Thread, Mine, lambda: threading.Timer(0, len, ((),))):
    thread = kind()
    thread.start()
    thread.join()
subprocess.run([sys.executable, "-S", "-c", ""], check=True)
if os.fork() == 0:
    os._exit(0)
os.wait()
os.system("true")
"""


@pytest.mark.launches
def test_threads_programs_and_forks_are_counted(tmp_path: Path) -> None:
    (tmp_path / wire.LOGS).mkdir()
    (tmp_path / "script.py").write_text(SCRIPT)
    env = {wire.ENV_LOGS: str(tmp_path / wire.LOGS), "PYTHONPATH": str(BOOTSTRAP), "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=env, check=True, timeout=60)
    assert [(one.ended, one.started) for one in read_run(tmp_path)] == [(True, 6)]
