"""Runs on the machines of ``--engine``, of which only remote/engine_runs.py knows more."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from detaudit.check import CheckRequest
from detaudit.cli.execute import Shown
from detaudit.config.flags import Flag
from detaudit.entry_points import LEAVES, entry_point
from detaudit.errors import UsageError
from detaudit.launch import Launcher
from detaudit.launch.plan import Settings
from detaudit.runner import MakeRunner


class Elsewhere(Protocol):
    """What does the runs of a command on other machines. Raises UsageError for what only works on this one."""

    def audit(self, settings: Settings, engine: str, options: Mapping[str, Any], shown: Shown) -> int:
        """Audit there, and return the exit status."""

    def check(
        self,
        requests: Sequence[CheckRequest],
        engine: str,
        judge: Callable[[Sequence[CheckRequest], Launcher], int],
        *,
        spread: bool,
    ) -> int:
        """Do the runs of audits there, and return what ``judge`` returns of them."""

    def search(
        self,
        settings: Settings,
        engine: str,
        python: str | None,
        asked: tuple[Flag, ...],
        look: Callable[[Launcher, MakeRunner], int],
    ) -> int:
        """Do the runs of a bisection or a trace on machines of one kind, and return what ``look`` returns.

        They are asked which of the flags ``asked`` they do not support.
        """


def engine_runs() -> Elsewhere:
    """Return what does runs on other machines."""
    return cast(Elsewhere, entry_point(LEAVES, "engine_runs", "part"))


def options_of(engine: str | None, python: str | None) -> tuple[str, ...]:
    """Return the options that name other machines, ``()`` if runs are done here; see Settings.engine_options."""
    return ("--engine", engine, *(("--python", python) if python else ())) if engine is not None else ()


def refuse_jobs(jobs: int | None, devices: tuple[str, ...]) -> None:
    """Raise UsageError for options that share out this machine."""
    if jobs != 1 or devices:
        raise UsageError("--jobs cannot be combined with --engine", "Remove one of them.")


def refuse_spread(spread: bool, engine: str | None) -> None:
    """Raise UsageError if runs are to be spread over one machine."""
    if spread and engine is None:
        raise UsageError("--spread needs --engine, which names the machines", "Add --engine ssh:HOST,HOST.")


def refuse_evidence(evidence: Path | None) -> None:
    """Raise UsageError if what runs on other machines used is to be hashed on this one."""
    if evidence is not None:
        hint = "Leave --evidence out; `detaudit evidence DIR` archives what came back, and marks what is hashed here."
        raise UsageError("--evidence cannot be combined with --engine: it hashes what this machine has", hint)
