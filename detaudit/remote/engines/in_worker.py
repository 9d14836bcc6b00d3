"""A job in a process of its own, for engines that call functions."""

import contextlib
import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from typing import BinaryIO, NamedTuple

import psutil

from detaudit import wire
from detaudit.remote.engine import Lost, Refused
from detaudit.remote.worker import frame, result_of, unframed

# Do a job in a process of its own, for engines that call functions, and end it when nobody waits for it any more.
#
# Nothing of the engine's worker is in that process: not its signals, its open files, nor the folder it was started in.


POLL_S = 0.5
"""Seconds between looks at whether the job is still wanted."""

END_S = 15.0
"""Seconds that a job has to end its run."""

INTERRUPTED = 130
"""The exit status of a job that was ended before its run was over."""


class Done(NamedTuple):
    """How the process of a job ended: on which host, its exit status and output, and the last line of its errors."""

    where: str
    status: int
    output: bytes
    error: str


def do(
    data: bytes, should_continue: Callable[[], bool] = lambda: True, variables: Mapping[str, str] | None = None
) -> Done:
    """Do an encoded job, as long as it is wanted, and with these environment variables besides those of this process.

    An interruption (KeyboardInterrupt) ends it.
    """
    where = platform.node()
    if not should_continue():
        return Done(where, INTERRUPTED, b"", "")
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "detaudit.remote.worker"],
            cwd="/",  # Python would import files of the folder it is started in
            env={**os.environ, **(variables or {})},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            _send(process, frame(data))
            while not _has_ended(process) and should_continue():
                continue
        finally:
            _end(process)
        return Done(where, process.returncode, _read(output), _last_line(errors))


def result_in(done: Done) -> bytes | Lost | Refused:
    """Return what came of a job whose process ended like this."""
    data = unframed(done.output)
    if data is not None:
        return result_of(data)
    if done.status > 0 and done.status != INTERRUPTED:
        return Refused(f"a job failed ({described(done.status)}): {done.error}")
    return Lost(f"a job was ended ({described(done.status)})")


def described(status: int) -> str:
    """Return what an exit status means, such as "SIGKILL"."""
    if status >= 0:
        return f"exit status {status}"
    with contextlib.suppress(ValueError):
        return signal.Signals(-status).name
    return f"signal {-status}"


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


# What a worker of Parsl calls to do a job. Its process ends when nobody waits for it any more.


OF_JOBS = "job-"
"""What the mark of jobs begins with, before that of Parsl: they end by themselves, in order, after their worker."""

_watching = threading.Event()


def do_job(data: bytes, cancelled: str) -> Done:
    """Do an encoded job. It is ended as soon as there is a file ``cancelled``."""
    _end_with_manager()
    mark = OF_JOBS + os.environ.get(wire.ENV_MARK, "")
    return do(data, lambda: not os.path.exists(cancelled), {wire.ENV_MARK: mark})


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
