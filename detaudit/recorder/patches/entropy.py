"""Replace the system's entropy by numbers that repeat in every run, but differ between processes, ranks and threads."""

from __future__ import annotations

import _thread
import os
import random
import sys

from ..process.ranks import rank_and_world

_forks = 0
_path: tuple[int, ...] = ()
_watched = False


def _before_fork() -> None:
    global _forks
    _forks += 1


def _in_child() -> None:
    global _forks, _path
    _path, _forks = (*_path, _forks), 0


def _thread_name() -> str:
    # A thread's name is the same in every run; its identifier and the order in which threads draw are not.
    threading = sys.modules.get("threading")
    # current_thread() would create an object for a thread that Python did not start.
    thread = getattr(threading, "_active", {}).get(_thread.get_ident())
    main = threading.main_thread() if threading is not None else None
    return "" if thread is None or thread is main else str(thread.name)


def _process() -> str:
    """Return a name that distinguishes this process from the others of a run, ``""`` in the first."""
    process = sys.modules.get("multiprocessing.process")
    identity = getattr(process.current_process(), "_identity", ()) if process is not None else ()
    rank, _ = rank_and_world()
    parts = [f"rank {rank}"] if rank else []
    parts += [f"child {identity}"] if identity else []  # a spawned child has not been forked
    parts += [f"fork {_path}"] if _path else []
    return " ".join(parts)


class Stream:
    """Draws numbers that depend on ``seed``, the process and the thread, in the order of each thread's calls."""

    def __init__(self, seed: int) -> None:
        global _watched
        self._seed = seed
        self._streams: dict[tuple[str, str], random.Random] = {}
        if not _watched and hasattr(os, "register_at_fork"):
            _watched = True
            os.register_at_fork(before=_before_fork, after_in_child=_in_child)

    def bits(self, count: int) -> int:
        """Return the next ``count`` bits as a number."""
        who = (_process(), _thread_name())
        stream = self._streams.get(who)
        if stream is None:
            stream = random.Random(f"{self._seed} {who}" if any(who) else self._seed)
            self._streams[who] = stream
        return stream.getrandbits(count)
