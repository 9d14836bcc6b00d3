"""Numbers that stand in for the system's entropy: equal in every run, others in each process, rank and thread."""

from __future__ import annotations

import _thread
import os
import random
import sys

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
    # The name tells threads apart and is the same in every run, which the identifier and the order of drawing are not.
    threading = sys.modules.get("threading")
    # Not current_thread(), which makes an object for a thread that is not Python's own.
    thread = getattr(threading, "_active", {}).get(_thread.get_ident())
    main = threading.main_thread() if threading is not None else None
    return "" if thread is None or thread is main else str(thread.name)


def _process() -> str:
    """Return what tells this process from the others of a run, ``""`` in the first."""
    process = sys.modules.get("multiprocessing.process")
    identity = getattr(process.current_process(), "_identity", ()) if process is not None else ()
    rank = os.environ.get("RANK", "0")
    told = [f"rank {rank}"] if rank != "0" else []
    told += [f"child {identity}"] if identity else []  # a spawned child has not been forked
    told += [f"fork {_path}"] if _path else []
    return " ".join(told)


class Stream:
    """Draws from ``seed``, in the order in which each thread of each process asks."""

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
