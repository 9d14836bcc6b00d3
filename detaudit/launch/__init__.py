"""Starts runs and ends them: what a run is, what came of it, and the interface that starts one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

RESULTS = ".detaudit"
"""The folder of all results, where --out names no other."""

SCRATCH = "scratch"
"""Below ``RunSpec.live``: what a run may write there is gone after it."""


@dataclass(frozen=True)
class RunSpec:
    """One run as it is to be started. Every run of a group has an equal one, but for ``folder`` and what varies.

    ``expected`` is an argument that the process which trains must show, or ``""``; see Target. ``timeout`` is in
    seconds; ``folder`` is where the logs and the trace are kept in the end, ``live`` where they are written.
    ``load`` is how many busy processes run beside it, ``place`` the name of the copy it works in, where not the usual.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: dict[str, str]
    folder: Path
    live: Path
    mark: str
    expected: str = ""
    timeout: float | None = None
    no_aslr: bool = False
    load: int = 0
    place: str = ""


@dataclass(frozen=True)
class RunOutcome:
    """How the processes of a run ended. ``exit_code`` is negative for a signal, as in subprocess."""

    exit_code: int | None
    wall_s: float
    timed_out: bool = False
    leftovers: tuple[str, ...] = field(default=())


class Launcher(Protocol):
    """Starts one run and waits for it."""

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        """Run ``spec`` to its end; ``tick`` is called several times a second meanwhile.

        Whatever is raised inside, KeyboardInterrupt included, no process of the run is left behind.
        """
