"""What a worker of Parsl calls: it does a job in a process of its own, and ends it when nobody waits for it any more.

Nothing of the worker is in that process: not its signals, its open files, nor the folder it was started in.
"""

import contextlib
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import threading
from multiprocessing.process import BaseProcess
from typing import BinaryIO, NamedTuple

import psutil

from detaudit import wire
from detaudit.remote.job import frame

POLL_S = 0.5
"""Seconds between looks at whether the job is still wanted."""

END_S = 15.0
"""Seconds that a job has to end its run."""

OF_JOBS = "job-"
"""What the mark of jobs begins with, before that of Parsl: they end by themselves, in order, after their worker."""

INTERRUPTED = 130
"""The exit status of a job that was ended before its run was over."""

_watching = threading.Event()


class Done(NamedTuple):
    """How the process of a job ended: on which host, its exit status and output, and the last line of its errors."""

    where: str
    status: int
    output: bytes
    error: str


def do_job(data: bytes, cancelled: str) -> Done:
    """Do an encoded job. It is ended as soon as there is a file ``cancelled``."""
    _end_with_manager()
    where = platform.node()
    if os.path.exists(cancelled):
        return Done(where, INTERRUPTED, b"", "")
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "detaudit.remote.job"],
            cwd="/",  # Python would import files of the folder it is started in
            env={**os.environ, wire.ENV_MARK: OF_JOBS + os.environ.get(wire.ENV_MARK, "")},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            _send(process, frame(data))
            while not _has_ended(process) and not os.path.exists(cancelled):
                continue
        finally:
            _end(process)
        return Done(where, process.returncode, _read(output), _last_line(errors))


def _send(process: subprocess.Popen[bytes], data: bytes) -> None:
    """Write to a process that goes on as long as its stdin is open."""
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(data)
            process.stdin.flush()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(POLL_S)
    return process.returncode is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
        process.kill()
        process.wait()
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def _read(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


def _last_line(file: BinaryIO) -> str:
    lines = _read(file).decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _end_with_manager() -> None:
    """From now on, end this process and the others of its manager when that is killed: nobody else would."""
    manager = multiprocessing.parent_process()
    if manager is None or manager.pid is None or _watching.is_set():
        return
    _watching.set()
    others: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        others = [child for child in psutil.Process(manager.pid).children() if child.pid != os.getpid()]
    threading.Thread(target=_watch, args=(manager, others), daemon=True).start()


def _watch(manager: BaseProcess, others: list[psutil.Process]) -> None:
    manager.join()
    for process in others:
        with contextlib.suppress(psutil.Error):  # psutil does not kill another one with the same number
            process.kill()
    os._exit(1)
