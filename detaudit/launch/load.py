"""Keep the CPU busy beside a run."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from detaudit.launch import orphans

BUSY = Path(__file__).resolve().parent / "busy.py"


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep this number of CPUs busy inside this block."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(processes):
            started.append(_start())
            orphans.keep(started[-1].pid)
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(BUSY), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C must reach the audit only, which then kills them.
    )
