"""Adopt the orphans of runs, so that what left its session and its variables behind can still be found and ended."""

import contextlib
import ctypes
import os
import sys

import psutil

_PR_SET_CHILD_SUBREAPER = 36
"""linux/prctl.h"""

_kept: set[int] | None = None
"""Children that are no orphans of runs, None as long as none are adopted."""


def adopt() -> None:
    """From now on, be the parent of every descendant whose parent ends. Only Linux can do that."""
    global _kept
    if _kept is None and sys.platform == "linux" and ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0:
        _kept = {child.pid for child in psutil.Process().children()}


def keep(pid: int) -> None:
    """Leave this child alone: it is a helper, and belongs to no run."""
    if _kept is not None:
        _kept.add(pid)


def descendants() -> list[psutil.Process]:
    """Return what runs have started that is alive, whatever its session and variables; nothing before ``adopt``."""
    if _kept is None:
        return []
    found = []
    with contextlib.suppress(psutil.Error):
        children = [child for child in psutil.Process().children() if child.pid not in _kept]
        for child in children:
            with contextlib.suppress(psutil.Error):
                found += [child, *child.children(recursive=True)]
    return [process for process in found if _is_alive(process)]


def bury() -> None:
    """Wait for adopted children that have ended. No run may be going on: its leader is waited for elsewhere."""
    for child in psutil.Process().children() if _kept is not None else ():
        with contextlib.suppress(psutil.Error, OSError):
            if child.pid not in (_kept or ()) and child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
