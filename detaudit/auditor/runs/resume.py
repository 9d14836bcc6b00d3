"""Stop a training halfway and resume it."""

from dataclasses import replace

import msgspec

from detaudit.auditor.runs.followed import Limits
from detaudit.auditor.runs.runner import Result, Runner
from detaudit.launch import RunSpec, refusals
from detaudit.launch.plan import Settings, plan_group
from detaudit.launch.target import Target
from detaudit.model import Group


def stop_and_resume(
    runner: Runner, settings: Settings, group: Group, resume: Target, stop: Target | None
) -> tuple[Result, Result]:
    """Return a run that stopped early, and the one that went on with what it had left in the same folder.

    ``stop`` stops by itself; if there is none, the target of ``settings`` is ended after half of its steps.
    """
    steps = group.first_finished.steps if group.first_finished else 0
    half = max(1, steps // 2) if stop is None else None
    first = _spec(runner, settings, stop or settings.target, "stopped")
    with runner.space.elsewhere(first.place, first.slot.name).fresh():
        stopped = runner.run(1, first, Limits(last_step=half), carry_on=True)
        resumed = runner.run(1, _spec(runner, settings, resume, "resumed"), carry_on=True)
    return stopped, resumed


def _spec(runner: Runner, settings: Settings, target: Target, name: str) -> RunSpec:
    recipe = msgspec.structs.replace(settings.recipes[0], name=name)
    refused = refusals.refused(recipe.flags, target)
    spec = plan_group(replace(settings, target=target), recipe, runner.space, refused).spec(1)
    return replace(spec, may_save=True)
