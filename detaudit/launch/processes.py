"""Find and end every process of an audit, orphans included, and count those that the kernel killed."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import msgspec
import psutil

import detaudit
from detaudit import redact, wire

# Count how often the kernel killed a process because memory ran out.


_CGROUPS = Path("/proc/self/cgroup")
_VMSTAT = Path("/proc/vmstat")
_MOUNT = Path("/sys/fs/cgroup")


def kills() -> int:
    """Return how many processes were killed for lack of memory so far, here or in the group that limits it.

    The kernel counts them for the whole system (``oom_kill`` in /proc/vmstat, proc(5)) and for each control group
    (``memory.events`` of version 2, ``memory.oom_control`` of version 1:
    https://docs.kernel.org/admin-guide/cgroup-v2.html). Only a change of the number means something.
    """
    return sum(_count(path) for path in (_VMSTAT, *_of_group()))


def _of_group() -> list[Path]:
    try:
        lines = [line.split(":", 2) for line in _CGROUPS.read_text().splitlines()]
    except OSError:
        return []
    event_files = []
    for number, controllers, path in (line for line in lines if len(line) == 3):
        if number == "0":
            event_files.append(_MOUNT / path.lstrip("/") / "memory.events")
        elif "memory" in controllers.split(","):
            event_files.append(_MOUNT / "memory" / path.lstrip("/") / "memory.oom_control")
    return event_files


def _count(path: Path) -> int:
    try:
        words = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return 0
    return next((int(line[1]) for line in words if line[:1] == ["oom_kill"] and line[1].isdecimal()), 0)


# Adopt the orphans of runs, so that what left its session and its variables behind can still be found and ended.


_PR_SET_CHILD_SUBREAPER = 36
"""linux/prctl.h"""

lock = threading.RLock()
"""Held while a child is started that must be known before others look for orphans."""

_kept: set[int] | None = None
"""Children that are no orphans of runs, None as long as none are adopted."""


@dataclass(frozen=True)
class _Run:
    """A run under way: its first process, and those known to descend from it."""

    leader: int
    followed: Container[int]


_runs: dict[str, _Run] = {}
"""The runs under way, by their marks."""


def adopt() -> None:
    """From now on, be the parent of every descendant whose parent ends. Only Linux can do that."""
    global _kept
    if _kept is None and sys.platform == "linux" and ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0:
        _kept = {child.pid for child in psutil.Process().children()}


def keep(pid: int) -> None:
    """Leave this child alone: it is a helper, and belongs to no run."""
    if _kept is not None:
        _kept.add(pid)


def forget(pid: int) -> None:
    """Note that a helper is gone: its number may be given to a process of a run."""
    if _kept is not None:
        _kept.discard(pid)


def begin(mark: str, leader: int, followed: Container[int]) -> None:
    """Note a run whose first process is started; the lock was held since before."""
    _runs[mark] = _Run(leader, followed)


def end(mark: str) -> None:
    """Note that a run is over, and all its processes are gone."""
    with lock:
        _runs.pop(mark, None)


def is_leader(pid: int) -> bool:
    """Return whether a run under way began with this process: only who started it may learn how it ended."""
    return any(run.leader == pid for run in tuple(_runs.values()))


def descendants(mark: str) -> list[psutil.Process]:
    """Return what this run has started that is alive, whatever its session and variables; nothing before ``adopt``.

    What no run is known to have started is left alone until only one is under way.
    """
    processes = []
    with lock, contextlib.suppress(psutil.Error):
        children = psutil.Process().children() if _kept is not None else []
        for child in (one for one in children if one.pid not in (_kept or ()) and _belongs(one, mark)):
            with contextlib.suppress(psutil.Error):
                processes += [child, *child.children(recursive=True)]
    return [process for process in processes if _is_alive(process)]


def bury() -> None:
    """Wait for adopted children that have ended, but for the leaders of runs, who are waited for elsewhere."""
    with lock:
        for child in psutil.Process().children() if _kept is not None else ():
            with contextlib.suppress(psutil.Error, OSError):
                ours = child.pid in (_kept or ()) or is_leader(child.pid)
                if not ours and child.status() == psutil.STATUS_ZOMBIE:
                    os.waitpid(child.pid, os.WNOHANG)


def _belongs(child: psutil.Process, mark: str) -> bool:
    """Return whether a child of this process is the leader of this run, or an orphan of it."""
    others = [run for other, run in _runs.items() if other != mark]
    if not others:
        return True
    own = _runs.get(mark)
    if own is not None and (child.pid == own.leader or child.pid in own.followed):
        return True
    if any(child.pid == run.leader or child.pid in run.followed for run in others):
        return False
    with contextlib.suppress(psutil.Error, OSError):
        return bool(child.environ().get(wire.ENV_MARK) == mark)
    return False


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


# Let what ends an audit wait until something is done, such as ending its processes.


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends an audit. SIGKILL does as well, and then the reaper ends its runs."""


@contextmanager
def shielded() -> Iterator[None]:
    """Let a signal that ends an audit take effect only after this block. Further ones are dropped."""
    if threading.current_thread() is not threading.main_thread():  # where no handlers run
        yield
        return
    came: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        came.append(number)

    before: dict[signal.Signals, Any] = {}
    try:
        for number in ENDING:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, note)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])


# Find and end every process of an audit, also those that left their group or their session.


GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""


def marked(mark: str) -> list[psutil.Process]:
    """Return the living processes that carry ``mark`` in their environment, or descend from its run in another way.

    The mark of an audit finds the runs of each slot.
    """
    processes = descendants(mark)
    known = {process.pid for process in processes}
    for process in psutil.process_iter():
        if process.pid in known:
            continue
        try:
            theirs = process.environ().get(wire.ENV_MARK, "")
            ours = theirs == mark or theirs.startswith(f"{mark}-")
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                processes.append(process)
        except (psutil.Error, OSError):
            continue  # It is gone, a zombie, or belongs to another user.
    return processes


def name(process: psutil.Process) -> str:
    """Return the shortened command line of a process, for a message."""
    try:
        return " ".join(redact.command(process.cmdline()))[:120] or process.name()
    except psutil.Error:
        return f"process {process.pid}"


def end_group(leader: subprocess.Popen[bytes], mark: str) -> None:
    """End a run: its process group, then everything else that carries the mark; first by SIGTERM, then by SIGKILL."""
    _signal_group(leader.pid, signal.SIGTERM)
    for process in marked(mark):
        _send(process, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        leader.wait(GRACE_S)
    _wait(marked(mark), GRACE_S)
    kill_group(leader, mark)


def kill_group(leader: subprocess.Popen[bytes], mark: str) -> None:
    """End a run at once by SIGKILL, so that no handler of its own saves anything for the next one."""
    _signal_group(leader.pid, signal.SIGKILL)
    kill_marked(mark)
    leader.wait()


def end_left_processes(mark: str) -> tuple[str, ...]:
    """End the processes that a finished run left behind, if they do not end soon by themselves; return their names."""
    alive = _wait(marked(mark), GRACE_S)
    names = tuple(sorted(name(process) for process in alive))
    if alive:
        for process in alive:
            _send(process, signal.SIGTERM)
        _wait(alive, GRACE_S)
        kill_marked(mark)
    bury()
    return names


def kill_marked(mark: str) -> None:
    """Kill everything that carries the mark, repeatedly, because it may keep forking."""
    for _ in range(20):
        alive = marked(mark)
        if not alive:
            return
        for process in alive:
            _send(process, signal.SIGKILL)
        _wait(alive, 0.5)


def _wait(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until processes end; return those that have not by then. Of a leader, only its Popen may learn the end."""
    _, alive = psutil.wait_procs([one for one in processes if not is_leader(one.pid)], timeout=seconds)
    return alive


def _send(process: psutil.Process, signal_: signal.Signals) -> None:
    with contextlib.suppress(psutil.Error, OSError):
        process.send_signal(signal_)


def _signal_group(pgid: int, signal_: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, signal_)


class Reaper:
    """A small process beside the audit that ends its runs if the audit itself is killed.

    Then it also puts back what the audit had put aside, by the journal in its results folder ``out``, and removes the
    copies of the user's folder there. It waits on a pipe, which closes however the audit ends, even by SIGKILL.
    """

    def __init__(self, mark: str, out: Path | None = None) -> None:
        env = {key: value for key, value in os.environ.items() if key != wire.ENV_MARK}
        # Isolated, or it would import a file of the user with the name of a module that it needs.
        packages = [str(Path(module.__file__ or "").parents[1]) for module in (detaudit, msgspec, psutil)]
        start = f"import sys; sys.path += {packages!r}; from detaudit.launch.reaper import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", start, mark, *([str(out.absolute())] if out is not None else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=env,
        )
        adopt()
        keep(self._process.pid)

    def __enter__(self) -> "Reaper":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pipe = self._process.stdin
        with shielded():
            if pipe is not None:
                with contextlib.suppress(OSError):
                    if error is None:
                        pipe.write(b"done")
                    pipe.close()
            self._process.wait()
