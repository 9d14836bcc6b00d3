"""Adopt the orphans of runs, so that what left its session and its variables behind can still be found and ended."""

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Container
from dataclasses import dataclass

import psutil

from detaudit import wire

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
    found = []
    with lock, contextlib.suppress(psutil.Error):
        children = psutil.Process().children() if _kept is not None else []
        for child in (one for one in children if one.pid not in (_kept or ()) and _belongs(one, mark)):
            with contextlib.suppress(psutil.Error):
                found += [child, *child.children(recursive=True)]
    return [process for process in found if _is_alive(process)]


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
