"""Judge the runs of a plan that came back, as if all had been started here."""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from detaudit.auditor import store
from detaudit.auditor.in_progress import AuditInProgress
from detaudit.launch.plan import Settings, plan_group
from detaudit.launch.target import Target
from detaudit.launch.workspace import SharedWorkspace
from detaudit.model import Across, Audit
from detaudit.model.warnings import LeftoversUnchecked
from detaudit.remote.gather import Gathered
from detaudit.remote.plan import Plan, other_sources
from detaudit.remote.returned import Reader


def join(gathered: Gathered, out: Path, cwd: Path, across: Across = Across.FAIL) -> Audit:
    """Return the report on the runs of a plan, and keep it and them in the folder ``out``.

    Lines of code are read from ``cwd`` if that has the code of the plan.
    Raises StorageError if the results cannot be written, or event logs that are needed cannot be fetched.
    """
    plan, reader = gathered.plan, Reader(out)
    settings = replace(_settings(plan, out, cwd), across=across)
    audit = AuditInProgress(settings, {})
    code = out / "code" if other_sources(plan, cwd) else cwd
    for first_run, recipe in zip(range(1, plan.total + 1, plan.runs), plan.recipes, strict=True):
        numbers = range(first_run, first_run + plan.runs)
        runs = {number - first_run + 1: gathered.runs[number] for number in numbers if number in gathered.runs}
        group_plan = plan_group(settings, recipe, SharedWorkspace(cwd), {})
        group = audit.begin(group_plan, code)
        for number, (attempt, folder) in runs.items():
            spec = group_plan.spec(number)
            logs = partial(gathered.logs, attempt, spec.folder)  # asked for if the run differs from the first
            audit.take(group, reader.result(spec, attempt, folder, logs))
        audit.update(group)
    unwatched = () if plan.isolate or len(gathered.runs) < 2 else (LeftoversUnchecked(apart=True),)
    warnings = (*gathered.warnings, *unwatched)
    report = audit.report(warnings=warnings, interrupted=gathered.interrupted)
    store.save(out, report)
    return report


def _settings(plan: Plan, out: Path, cwd: Path) -> Settings:
    target = Target(plan.arguments, plan.script, plan.module, plan.python or sys.executable)
    usual = plan.settings(target, out, cwd)
    return replace(usual, outer={}, started=plan.created)
