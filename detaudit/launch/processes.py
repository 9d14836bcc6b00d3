"""Find and end every process of an audit, also those that left their group or their session."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

import msgspec
import psutil

import detaudit
from detaudit import redact, wire
from detaudit.launch import orphans
from detaudit.launch.shield import shielded

GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""


def marked(mark: str) -> list[psutil.Process]:
    """Return the living processes that carry ``mark`` in their environment, or descend from its run in another way.

    The mark of an audit finds the runs of each slot.
    """
    found = orphans.descendants(mark)
    known = {process.pid for process in found}
    for process in psutil.process_iter():
        if process.pid in known:
            continue
        try:
            theirs = process.environ().get(wire.ENV_MARK, "")
            ours = theirs == mark or theirs.startswith(f"{mark}-")
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue  # It is gone, a zombie, or belongs to another user.
    return found


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
    orphans.bury()
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


def _wait(found: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until processes end; return those that have not by then. Of a leader, only its Popen may learn the end."""
    _, alive = psutil.wait_procs([one for one in found if not orphans.is_leader(one.pid)], timeout=seconds)
    return alive


def _send(process: psutil.Process, signal_: signal.Signals) -> None:
    with contextlib.suppress(psutil.Error, OSError):
        process.send_signal(signal_)


def _signal_group(pgid: int, signal_: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, signal_)


class Reaper:
    """A small process beside the audit that ends its runs if the audit itself is killed.

    Then it also puts back what the audit had put aside, by the journal in its results folder ``out``. It waits on a
    pipe, which closes however the audit ends, even by SIGKILL.
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
        orphans.adopt()
        orphans.keep(self._process.pid)

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
