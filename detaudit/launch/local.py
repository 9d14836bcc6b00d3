"""Launch runs on this machine: each in its own session, output through pipes, a time limit, no process left behind."""

import contextlib
import errno
import platform
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable

from detaudit import private, wire
from detaudit.errors import StorageError, UnknownNameError, WorkspaceError
from detaudit.launch import SCRATCH, EnoughError, RunOutcome, RunSpec, memory, orphans, processes
from detaudit.launch.aslr import no_aslr
from detaudit.launch.descendants import Descendants
from detaudit.launch.load import busy
from detaudit.launch.log import Log
from detaudit.launch.shield import shielded
from detaudit.launch.slots import on_cpus
from detaudit.launch.threads import Competing
from detaudit.model.outputs import RunFacts
from detaudit.outputs import text

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
        started, killed_before = time.monotonic(), memory.kills()
        with orphans.lock:
            leader = _start(spec, stdout, stderr)
            stdout.started()
            stderr.started()
            tree, competing = Descendants(leader.pid), Competing()
            orphans.begin(spec.mark, leader.pid, tree)
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
            if timed_out or (ended and spec.may_save):
                processes.end_group(leader, spec.mark)
            elif ended:
                processes.kill_group(leader, spec.mark)
            left = processes.end_left_processes(spec.mark)
        except BaseException:
            with shielded():
                processes.end_group(leader, spec.mark)
            raise
        finally:
            orphans.end(spec.mark)
        code = None if ended else leader.returncode
        starved = code == -signal.SIGKILL and memory.kills() > killed_before
        return RunOutcome(code, wall_s, timed_out, ended, left, tree.programs, competing.usual, starved)


def _recorder(spec: RunSpec) -> text.Recorder:
    now, home = time.time(), spec.env.get("HOME", "")
    names = (str(spec.live), str(spec.cwd), home, platform.node())
    facts = RunFacts(started=now, ended=now, names=tuple(name for name in names if len(name) > 1))
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
