"""Watch the process tree of a run for programs that load a framework, whoever started them and with whatever variables.

The addresses of its arguments and variables identify a program: a fork keeps them, ``exec`` changes them. The recorder
writes the same addresses, so what is not among them was not recorded.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from detaudit import wire
from detaudit.launch import Program
from detaudit.launch.plan import BOOTSTRAP

INTERVAL_S = 0.2
"""Seconds between two looks. A framework takes longer to load."""

_REREAD = 50
"""Looks after which all processes are read again: the number of one that ended may be given to one of the run."""

_MAPPED = {
    part: (framework.distributions or (name,))[0]
    for name, framework in wire.FRAMEWORKS.items()
    for part in framework.mapped
}
"""Part of the path of a file that a process with a framework has mapped, and the framework."""

_PROC = Path("/proc")


class Descendants:
    """The programs with a framework among the descendants of a process, also of those that left its session.

    It holds the numbers of those that were alive at the last look.
    """

    def __init__(self, leader: int) -> None:
        self._pids = {leader}
        self._session = leader
        self._next, self._looks = 0.0, 0
        self._others: set[int] = set()
        self._found: dict[tuple[int, tuple[int, ...]], Program] = {}

    @property
    def programs(self) -> tuple[Program, ...]:
        """All that were found so far."""
        return tuple(self._found.values())

    def __contains__(self, pid: object) -> bool:
        return pid in self._pids

    def __iter__(self) -> Iterator[int]:
        return iter(tuple(self._pids))

    def look(self) -> bool:
        """Look at the tree, unless that was a moment ago; return whether it was looked at."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + INTERVAL_S
        stats = self._stats()
        grown = True
        while grown:
            of_run = {pid for pid, (parent, session, _) in stats.items() if self._is_of_run(pid, parent, session)}
            grown = bool(of_run - self._pids)
            self._pids |= of_run
        self._pids &= stats.keys()  # the number of a process that is gone may be given to one of another tree
        self._others |= stats.keys() - self._pids
        for pid in self._pids:
            key = pid, stats[pid][2]
            if key not in self._found:
                with contextlib.suppress(OSError):
                    self._look_at(*key)
        return True

    def _stats(self) -> dict[int, tuple[int, int, tuple[int, ...]]]:
        """Return the parent, the session and the addresses of all processes but those known to be of others."""
        running = {int(name) for name in os.listdir(_PROC) if name.isdigit()} if _PROC.is_dir() else set()
        self._looks += 1
        self._others &= running if self._looks % _REREAD else set()
        stats = {}
        for pid in running - self._others:
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
                stats[pid] = int(fields[1]), int(fields[3]), wire.addresses(fields)
        return stats

    def _is_of_run(self, pid: int, parent: int, session: int) -> bool:
        return pid in self._pids or parent in self._pids or session == self._session

    def _look_at(self, pid: int, addresses: tuple[int, ...]) -> None:
        maps = (_PROC / str(pid) / "maps").read_text(errors="replace")
        framework = next((name for part, name in _MAPPED.items() if part in maps), None)
        if framework is None:
            return
        command = (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        variables = (_PROC / str(pid) / "environ").read_bytes().decode(errors="replace").split("\0")
        env = dict(variable.partition("=")[::2] for variable in variables)
        self._found[pid, addresses] = Program(
            pid=pid,
            addresses=addresses,
            command=tuple(command),
            framework=framework,
            has_variables=wire.ENV_LOGS in env,
            has_path=str(BOOTSTRAP) in env.get("PYTHONPATH", "").split(os.pathsep),
        )
