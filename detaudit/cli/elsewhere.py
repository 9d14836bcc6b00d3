"""Audit a training on other machines, by an engine."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from detaudit.auditor.audit import Auditor
from detaudit.cli.execute import Shown, audit
from detaudit.errors import UsageError
from detaudit.launch import Slot
from detaudit.launch.plan import Settings
from detaudit.launch.slots import Jobs
from detaudit.launch.workspace import repository_root
from detaudit.remote import state
from detaudit.remote.engines import connect
from detaudit.remote.plan import plan_of
from detaudit.remote.runner import Carrier, Elsewhere
from detaudit.remote.snapshot import snapshot


def audit_elsewhere(settings: Settings, engine: str, options: Mapping[str, Any], shown: Shown) -> int:
    """Audit on the machines of an engine, and return the exit status. Raises UsageError for what only works here."""
    for name, given in (("--jobs", options["jobs"] != 1 or bool(options["devices"])), ("--vary", bool(settings.vary))):
        if given:
            raise UsageError(f"{name} cannot be combined with --engine", "Remove one of them.")
    python = options["python"] or ""
    variables = state.planned_variables(os.environ)  # before an engine is imported, which may set some
    plan = plan_of(replace(settings, isolate=False), python=python, variables=variables, passed=())
    root = (settings.isolate_root or repository_root(settings.cwd)).resolve()
    code = snapshot(root, settings.cwd, settings.out)
    machines = connect(engine, python)
    try:
        slots = tuple(Slot(name=f"{number:04}") for number in range(1, min(machines.at_once, settings.runs) + 1))
        settings = replace(settings, jobs=Jobs(slots=slots, elsewhere=True), stepwise=False)
        carrier = Carrier(machines)
        make = Elsewhere(carrier, plan, code, python)
        return audit(settings, lambda observer: Auditor(settings, carrier, observer, make), shown)
    finally:
        machines.close()
