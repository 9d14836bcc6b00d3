"""Start runs and end them: what a run is, how it ended, and the interface that starts one."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from detaudit.config.recipes import Recipe
from detaudit.model.outputs import Declared

RESULTS = ".detaudit"
"""The folder of all results, unless --out names a different one."""

MARK = os.path.join("runs", ".detaudit")
"""An empty file below a results folder, by which another audit of the same project knows it."""

SCRATCH = "scratch"
"""A folder below ``RunSpec.live`` that a run may write to; it is removed after the run."""


@dataclass(frozen=True)
class Slot:
    """What one of several runs at once has of the machine: its CPUs, ``()`` for all of them, and its devices.

    ``name`` is part of its paths and of its mark, ``""`` if there is only one slot.
    """

    name: str = ""
    cpus: tuple[int, ...] = ()
    devices: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunSpec:
    """How to start one run. The specs of a group are equal, except for ``folder`` and what varies.

    ``expected`` is an argument that the process which trains must have, or ``""``; see Target. ``timeout`` is in
    seconds. The logs and the event logs are written to ``live`` and moved to ``folder`` after the run. ``load`` is
    the number of busy processes beside it, ``copy_name`` that of the copy it works in, ``""`` for the usual one. Two
    runs with different ``slot``s may go at once: nothing that they write to has the same path, and their marks differ.
    ``recipe`` is whose flags its environment has, ``job`` what another machine needs to do it. What matches one of
    ``ignore_text`` is no part of what it prints, ``declared`` is what the values in it are.
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
    copy_name: str = ""
    slot: Slot = Slot()
    recipe: Recipe | None = None
    job: object = None
    ignore_text: tuple[str, ...] = ()
    declared: Declared = field(default_factory=Declared)

    @property
    def log_dir(self) -> str:
        """Where its logs are after the run: relative to the results folder, in which ``live`` is, if below it."""
        results = self.live.parent
        return str(self.folder.relative_to(results) if self.folder.is_relative_to(results) else self.folder)


@dataclass(frozen=True)
class Program:
    """A program with a framework among the processes of a run, recorded or not.

    ``addresses`` identify it; see descendants.py. ``has_variables`` and ``has_path`` say
    whether it was started with the variables that load the recorder, and with its folder on PYTHONPATH.
    """

    pid: int
    addresses: tuple[int, ...]
    command: tuple[str, ...]
    framework: str
    has_variables: bool
    has_path: bool


@dataclass(frozen=True)
class RunOutcome:
    """How the processes of a run ended.

    ``exit_code`` is negative for a signal, as in subprocess; a run that was ``ended`` by a tick has none.
    ``left_processes`` are the command lines of processes that outlived the run and were killed, ``programs`` those with
    a framework. ``threads`` is how many of its threads competed for CPUs, 0 if that was not watched.
    ``out_of_memory`` says that the kernel killed a process for lack of memory meanwhile.
    """

    exit_code: int | None
    wall_s: float
    timed_out: bool = False
    ended: bool = False
    left_processes: tuple[str, ...] = field(default=())
    programs: tuple[Program, ...] = ()
    threads: int = 0
    out_of_memory: bool = False


class EnoughError(Exception):
    """Raised by a tick: the run need not go on."""


class CancelledError(Exception):
    """Raised by a tick, and by what calls it: the run is not wanted any more."""


class Launcher(Protocol):
    """Starts one run and waits for it. What starts runs on other machines implements it too.

    It may be called in several threads at once, for runs in different slots. It starts each run once: a run that is
    lost with its machine is an error, never an outcome, because a script that crashes now and then is a finding.
    """

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        """Run ``spec`` to its end, and call ``tick`` several times a second meanwhile, which ends it by EnoughError.

        Whatever is raised inside, KeyboardInterrupt included, no process of the run is left behind, and none of a run
        that goes on beside it is touched. What the run wrote below ``spec.live`` is in ``spec.folder`` afterwards; what
        it has written so far can be read below ``spec.live`` at each tick.
        """
