"""Do the runs of an audit, a check, a bisection or a trace on other machines, by an engine."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from detaudit.audit import Auditor
from detaudit.check import CheckRequest
from detaudit.cli import execute
from detaudit.cli.engine import options_of, refuse_jobs
from detaudit.cli.execute import Shown
from detaudit.config.flags import Flag
from detaudit.errors import UsageError
from detaudit.launch import Launcher, Slot
from detaudit.launch.plan import Settings
from detaudit.launch.slots import Jobs
from detaudit.launch.workspace import repository_root
from detaudit.remote import plan as state
from detaudit.remote.engines import connect
from detaudit.remote.plan import Plan, Snapshot, plan_of, snapshot
from detaudit.remote.runner import EngineLauncher, RemoteRuns
from detaudit.runner import MakeRunner

ON_EACH = 2
"""Runs of a machine, at least, if they are spread: one does not show whether it repeats its result."""


def audit(settings: Settings, engine: str, options: Mapping[str, Any], shown: Shown) -> int:
    """Audit on the machines of an engine, and return the exit status. Raises UsageError for what only works here."""
    refuse_jobs(options["jobs"], options["devices"])
    _refuse_varying(settings)
    sent = _sent(settings, options["python"] or "")
    with _machines(engine, sent.python, spread=options["spread"]) as machines:
        settings, make = machines.of(sent)
        return execute.audit(settings, lambda observer: Auditor(settings, machines.carrier, observer, make), shown)


def check(
    requests: Sequence[CheckRequest],
    engine: str,
    judge: Callable[[Sequence[CheckRequest], Launcher], int],
    *,
    spread: bool,
) -> int:
    """Do the runs of audits on the machines of an engine, and return what ``judge`` returns of them.

    Raises UsageError for what only works on this machine.
    """
    resumed = next((one.name for one in requests if one.resume is not None), None)
    if resumed is not None:
        message = f"audit {resumed!r}: the gate resume compares runs on this machine with those of --engine"
        raise UsageError(message, "Leave it out with --gate repeatable, or --gate baseline.")
    pythons = {one.audit.python or "" for one in requests}
    if len(pythons) > 1:
        raise UsageError("the audits have different interpreters, of which --engine takes one", "Check them by name.")
    sent = [_sent(one.settings, one.audit.python or "") for one in requests]
    with _machines(engine, *pythons, spread=spread) as machines:
        moved = [machines.of(one) for one in sent]
        there = [
            replace(one, settings=settings, make_runner=make)
            for one, (settings, make) in zip(requests, moved, strict=True)
        ]
        return judge(there, machines.carrier)


def search(
    settings: Settings,
    engine: str,
    python: str | None,
    asked: tuple[Flag, ...],
    look: Callable[[Launcher, MakeRunner], int],
) -> int:
    """Do the runs of a bisection or a trace on machines of one kind, and return what ``look`` returns.

    They are asked which of the flags ``asked`` they do not support. Raises UsageError for what only works here.
    """
    _refuse_varying(settings)
    sent = _sent(settings, python or "")
    with _machines(engine, sent.python, spread=False) as machines:
        made = RemoteRuns(machines.carrier, sent.plan, sent.code, sent.python, alike=True, asked=asked)
        return look(machines.carrier, made)


def _refuse_varying(settings: Settings) -> None:
    """Raise UsageError for variations, which are made on this machine."""
    if settings.vary:
        raise UsageError("--vary cannot be combined with --engine", "Remove one of them.")


@dataclass(frozen=True)
class _Sent:
    """What every run of an audit is sent with."""

    settings: Settings
    plan: Plan
    code: Snapshot
    python: str


def _sent(settings: Settings, python: str) -> _Sent:
    variables = {**state.planned_variables(os.environ), **settings.env}  # before an engine, which may set some
    plan = plan_of(replace(settings, isolate=False), python=python, variables=variables, passed=())
    root = Path(settings.isolate_root or repository_root(settings.cwd)).resolve()
    return _Sent(settings, plan, snapshot(root, settings.cwd, settings.out), python)


@dataclass(frozen=True)
class _Machines:
    options: tuple[str, ...]
    carrier: EngineLauncher
    at_once: int
    spread: tuple[str, ...]

    def of(self, sent: _Sent) -> tuple[Settings, RemoteRuns]:
        """Return the settings of an audit whose runs are done there, and what makes their runner."""
        runs = max(sent.settings.runs, ON_EACH * len(self.spread))
        runs += -runs % (len(self.spread) or 1)
        plan, count = msgspec.structs.replace(sent.plan, runs=runs), min(self.at_once, runs)
        slots = tuple(Slot(name=f"{number:04}") for number in range(1, count + 1))
        settings = replace(sent.settings, runs=runs, jobs=Jobs(slots=slots, remote=True))
        settings = replace(settings, stepwise=False, engine_options=self.options)
        return settings, RemoteRuns(self.carrier, plan, sent.code, sent.python, self.spread)


@contextmanager
def _machines(engine: str, python: str, *, spread: bool) -> Iterator[_Machines]:
    connection = connect(engine, python)
    try:
        if spread and not connection.places:
            message = f"{engine.partition(':')[0]} chooses the machine of a run itself, so --spread cannot"
            raise UsageError(message, "Leave it out, and raise --runs until each machine has done two.")
        yield _Machines(
            options_of(engine, python),
            EngineLauncher(connection),
            connection.at_once,
            tuple(sorted(connection.places)) if spread else (),
        )
    finally:
        connection.close()
