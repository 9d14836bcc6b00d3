"""Runs on this machine: a process group for each, output into files, a time limit, nothing left behind."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from detaudit.errors import StorageError, UnknownNameError
from detaudit.launch import SCRATCH, RunOutcome, RunSpec, processes
from detaudit.launch.aslr import no_aslr
from detaudit.launch.load import busy

TICK_S = 0.1
LOG_LIMIT = 64 * 2**20
"""Bytes of output kept of a run; of what is more, the last MiB is."""

LOG_TAIL = 2**20
_CUT = b"[detaudit: "


class LocalLauncher:
    """The Launcher for this machine."""

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        """See Launcher.launch. Raises StorageError where logs cannot be written."""
        try:
            (spec.live / "trace").mkdir(parents=True)
            with _log(spec.live / "stdout.log") as stdout, _log(spec.live / "stderr.log") as stderr, busy(spec.load):
                outcome = self._run(spec, stdout, stderr, tick)
        except OSError as error:
            raise StorageError(
                f"cannot write below {spec.live}: {error}", "Free space, or name another --out."
            ) from error
        finally:
            _keep(spec)
        return outcome

    def _run(self, spec: RunSpec, stdout: IO[bytes], stderr: IO[bytes], tick: Callable[[], None]) -> RunOutcome:
        started = time.monotonic()
        leader = _start(spec, stdout, stderr)
        timed_out = False
        try:
            while leader.poll() is None:
                timed_out = spec.timeout is not None and time.monotonic() - started > spec.timeout
                if timed_out:
                    break
                _bound(stdout)
                _bound(stderr)
                tick()
                _wait(leader)
            wall_s = time.monotonic() - started
            if timed_out:
                processes.end_group(leader, spec.mark)
            leftovers = processes.end_leftovers(spec.mark)
            _bound(stdout)  # what was written since the last tick
            _bound(stderr)
        except BaseException:
            processes.end_group(leader, spec.mark)
            raise
        return RunOutcome(leader.returncode, wall_s, timed_out, leftovers)


def _start(spec: RunSpec, stdout: IO[bytes], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    with no_aslr() if spec.no_aslr else contextlib.nullcontext():
        try:
            return subprocess.Popen(
                spec.argv,
                cwd=spec.cwd,
                env=spec.env,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except (FileNotFoundError, PermissionError) as error:
            raise UnknownNameError(f"cannot run {spec.argv[0]!r}: {error.strerror}", "Check the command.") from error


def _wait(leader: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        leader.wait(TICK_S)


def _log(path: Path) -> IO[bytes]:
    # Appending, so that the script goes on at the end after we shortened the file.
    return open(path, "a+b", buffering=0)


def _bound(log: IO[bytes]) -> None:
    size = os.fstat(log.fileno()).st_size
    if size > LOG_LIMIT:
        tail = os.pread(log.fileno(), LOG_TAIL, size - LOG_TAIL)
        os.ftruncate(log.fileno(), 0)
        log.write(_CUT + f"{size - LOG_TAIL} bytes of output are not kept]\n".encode() + tail)


def was_cut(log: Path) -> bool:
    """Whether a log is no longer whole. Raises OSError where it cannot be read."""
    with log.open("rb") as file:
        return file.read(len(_CUT)) == _CUT


def _keep(spec: RunSpec) -> None:
    """Give the finished run's files their own folder; the next run writes to the same paths as this one did."""
    if spec.live.exists():
        shutil.rmtree(spec.live / SCRATCH, ignore_errors=True)
        spec.folder.parent.mkdir(parents=True, exist_ok=True)
        spec.live.rename(spec.folder)
