"""The launcher of this machine: a session of its own, bounded output, and load beside it."""

import contextlib
import errno
import fcntl
import os
import platform
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from detaudit import private, wire
from detaudit.errors import StorageError, UnknownNameError, WorkspaceError
from detaudit.launch import SCRATCH, EnoughError, RunOutcome, RunSpec
from detaudit.launch import processes as launch_processes
from detaudit.launch.descendants import Descendants
from detaudit.launch.processes import shielded
from detaudit.launch.refusals import no_aslr
from detaudit.launch.slots import on_cpus
from detaudit.model.outputs import RunFacts, Text
from detaudit.outputs import text
from detaudit.outputs.text import Recorder

# Keep the CPU busy beside a run.


BUSY = Path(__file__).resolve().parent / "busy.py"


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep this number of CPUs busy inside this block."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(processes):
            started.append(_start_busy())
            launch_processes.keep(started[-1].pid)
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


def _start_busy() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(BUSY), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C must reach the audit only, which then kills them.
    )


# Read what a run prints through a pipe, keep it in a file of limited size, and record it as text.
#
# The run writes to the pipe, never to the file: it can neither overwrite what it printed before, nor make the file
# larger than it may be. A thread reads the pipe at once, so the run waits only while its output comes faster than it is
# read.


LIMIT = 64 * 2**20
"""Maximum size of a log in bytes. Of a longer output, the end is kept."""

TAIL = 2**20
_CUT = b"[detaudit: "
_NOTICE = 100
_CHUNK = 2**20
_PIPE = 2**20
"""Bytes that a run can print before it waits for the reader; unprivileged users may not ask for more on Linux."""

_DRAIN_S = 5.0
"""Seconds for which a process that cannot be ended, and goes on printing, is listened to after the end of the run."""


class Log:
    """The log of one stream, and its text. A run writes to ``input``, a descriptor that only its processes inherit."""

    def __init__(self, path: Path, recorder: Recorder) -> None:
        """Start to read. Raises OSError if the file cannot be written."""
        self._file = _BoundedFile(path)
        self._recorder = recorder
        self._error: BaseException | None = None
        self.text: Text | None = None
        output, self.input = os.pipe()
        self._open = True
        self._wake, self._waker = os.pipe()
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, _PIPE)
        os.set_blocking(output, False)
        self._thread = threading.Thread(target=self._read, args=(output,), name=f"reader of {path.name}", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """End, once all is read that processes of the run printed. Those that still hold the pipe are not awaited.

        Raises OSError if not all could be written, unless something else was raised.
        """
        self.started()
        os.close(self._waker)
        self._thread.join()
        os.close(self._wake)
        if kind is None:
            self.check()

    def started(self) -> None:
        """Note that the run has the descriptor, so that its own end is also the end of the pipe."""
        if self._open:
            self._open = False
            os.close(self.input)

    def check(self) -> None:
        """Raise OSError if the log cannot be written: nothing that the run prints is kept any more."""
        if self._error is not None:
            raise self._error

    def _read(self, output: int) -> None:
        try:
            with self._file:
                self._read_all(output)
            self.text = self._recorder.finish()
        except BaseException as error:  # noqa: BLE001  (raised by check)
            self._error = error
        finally:
            os.close(output)

    def _read_all(self, output: int) -> None:
        ready = select.poll()
        ready.register(output, select.POLLIN)
        ready.register(self._wake, select.POLLIN)
        until: float | None = None
        while until is None or time.monotonic() < until:
            if until is None and any(one == self._wake for one, _ in ready.poll()):
                until = time.monotonic() + _DRAIN_S
            try:
                data = os.read(output, _CHUNK)
            except BlockingIOError:
                if until is not None:
                    return
                continue
            if not data:
                return
            self._file.write(data)
            self._recorder.feed(data)


class _BoundedFile:
    """A file that is cut to its end whenever it is too long, with a notice of how much is missing in front."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "w+b", buffering=0, opener=private.opener)  # noqa: SIM115
        self._size = self._dropped = 0

    def __enter__(self) -> "_BoundedFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        """Append. Raises OSError if it cannot be written."""
        for at in range(0, len(data), TAIL):
            self._append(data[at : at + TAIL])

    def _append(self, data: bytes) -> None:
        if self._size + len(data) > LIMIT:
            start = _NOTICE if self._dropped else 0
            kept = os.pread(self._file.fileno(), TAIL, max(start, self._size - TAIL))
            self._dropped += self._size - start - len(kept)
            self._file.truncate(0)
            self._file.seek(0)
            self._size = 0
            self._put(self._notice())
            self._put(kept)
        self._put(data)

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = self._file.write(view)
            self._size += written
            view = view[written:]

    def _notice(self) -> bytes:
        line = _CUT + b"%d bytes of output were dropped]" % self._dropped
        return line.ljust(_NOTICE - 1) + b"\n"


def was_cut(log: Path) -> bool:
    """Return whether a log is incomplete. Raises OSError if it cannot be read."""
    with log.open("rb") as file:
        return file.read(len(_CUT)) == _CUT


# Count the threads of a run that compete for CPUs.


_USUAL = 0.9
"""The share of looks that saw no more threads: an import or a pause is not what the training needs."""


class Competing:
    """The threads of a run that are running or wait for a CPU, as looks from time to time show."""

    def __init__(self) -> None:
        self._seen: list[int] = []

    def look(self, pids: Iterable[int]) -> None:
        """Look at the processes with these numbers."""
        self._seen.append(sum(map(_running, pids)))

    @property
    def usual(self) -> int:
        """How many there were at most in nine looks of ten, 0 without a look."""
        return sorted(self._seen)[int(_USUAL * (len(self._seen) - 1))] if self._seen else 0


def _running(pid: int) -> int:
    count = 0
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
                count += file.read().rpartition(b") ")[2].startswith(b"R")
    return count


# Launch runs on this machine: each in its own session, output through pipes, a time limit, no process left behind.


TICK_S = 0.1


class LocalLauncher:
    """The Launcher for this machine."""

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        """See Launcher.launch. Raises StorageError if the logs cannot be written."""
        try:
            private.make_folder(spec.live / wire.LOGS)
            recorders = [_recorder(spec), _recorder(spec)]
            with (
                Log(spec.live / "stdout.log", recorders[0]) as stdout,
                Log(spec.live / "stderr.log", recorders[1]) as stderr,
                busy(spec.load),
            ):
                outcome = self._run(spec, stdout, stderr, tick)
            text.save(spec.live, stdout.text, stderr.text)
        except OSError as error:
            raise StorageError.of(f"write to {spec.live}", error) from error
        finally:
            with shielded():
                _keep_files(spec)
        return outcome

    def _run(self, spec: RunSpec, stdout: Log, stderr: Log, tick: Callable[[], None]) -> RunOutcome:
        started, killed_before = time.monotonic(), launch_processes.kills()
        with launch_processes.lock:
            leader = _start(spec, stdout, stderr)
            stdout.started()
            stderr.started()
            tree, competing = Descendants(leader.pid), Competing()
            launch_processes.begin(spec.mark, leader.pid, tree)
        timed_out = ended = False
        try:
            while leader.poll() is None:
                timed_out = spec.timeout is not None and time.monotonic() - started > spec.timeout
                if timed_out:
                    break
                if tree.look() and spec.slot.name:
                    competing.look(tree)
                stdout.check()
                stderr.check()
                ended = _is_enough(tick)
                if ended:
                    break
                _wait(leader)
            wall_s = time.monotonic() - started
            if timed_out:
                launch_processes.end_group(leader, spec.mark)
            elif ended:
                launch_processes.kill_group(leader, spec.mark)
            left = launch_processes.end_left_processes(spec.mark)
        except BaseException:
            with shielded():
                launch_processes.end_group(leader, spec.mark)
            raise
        finally:
            launch_processes.end(spec.mark)
        code = None if ended else leader.returncode
        starved = code == -signal.SIGKILL and launch_processes.kills() > killed_before
        return RunOutcome(code, wall_s, timed_out, ended, left, tree.programs, competing.usual, starved)


def _recorder(spec: RunSpec) -> text.Recorder:
    now, home = time.time(), spec.env.get("HOME", "")
    names = tuple(name for name in (str(spec.live), str(spec.cwd), home, platform.node()) if len(name) > 1)
    facts = RunFacts(started=now, ended=now, names=names, declared=spec.declared)
    return text.Recorder(facts, [re.compile(pattern) for pattern in spec.ignore_text])


def _is_enough(tick: Callable[[], None]) -> bool:
    try:
        tick()
    except EnoughError:
        return True
    return False


def _start(spec: RunSpec, stdout: Log, stderr: Log) -> subprocess.Popen[bytes]:
    with on_cpus(spec.slot.cpus), no_aslr() if spec.no_aslr else contextlib.nullcontext():
        try:
            return subprocess.Popen(
                spec.argv,
                cwd=spec.cwd,
                env=spec.env,
                stdin=subprocess.DEVNULL,
                stdout=stdout.input,
                stderr=stderr.input,
                start_new_session=True,
            )
        except OSError as error:
            if not spec.cwd.is_dir():
                raise WorkspaceError(
                    f"the working folder {spec.cwd} is gone", "Keep it while an audit runs."
                ) from error
            hint = "Check the command."
            if error.errno == errno.ENOEXEC:
                hint = "Add a first line such as #!/bin/sh to it, or start it with its interpreter: -- bash train.sh"
            elif isinstance(error, PermissionError):
                hint = "Make it executable with chmod +x, or start it with its interpreter."
            raise UnknownNameError(f"cannot run {spec.argv[0]!r}: {error.strerror}", hint) from error


def _wait(leader: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        leader.wait(TICK_S)


def _keep_files(spec: RunSpec) -> None:
    """Move the files of a finished run to its own folder, because the next run writes to the same paths."""
    if spec.live.exists():
        shutil.rmtree(spec.live / SCRATCH, ignore_errors=True)
        try:
            private.make_folder(spec.folder.parent)
            spec.live.rename(spec.folder)
        except OSError as error:
            raise StorageError.of(f"write to {spec.folder}", error) from error
