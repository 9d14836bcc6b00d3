"""From the options of a command line to the settings of an audit."""

import os
import secrets
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from detaudit import redact, store
from detaudit.config.flags import Device, load_catalogue
from detaudit.config.options import DECLARED, RunOptions, values_of
from detaudit.config.recipes import Recipe, load_recipe
from detaudit.config.variations import load_variations, select
from detaudit.errors import UsageError
from detaudit.launch.plan import Settings
from detaudit.launch.slots import Jobs, cpu_quota, divide
from detaudit.launch.target import Target, resolve_target
from detaudit.launch.vary import Varying, offered


def command_line() -> tuple[str, ...]:
    """Return the command as the user typed it, for the report, without secrets."""
    return redact.command(("detaudit", *sys.argv[1:]))


def explicit_command(target: Target) -> tuple[str, ...]:
    """Return the command with the Python that was found, so that the report names it and a resumption takes it too."""
    words = command_line()
    return (*words[:2], "--python", target.python, *words[2:]) if target.python_found else words


def new_results(out: Path | None) -> tuple[str, Path]:
    """Return a new mark for the processes of an audit, and its results folder: ``out``, or a new one."""
    mark = secrets.token_hex(4)
    return mark, (out or store.new_folder(mark)).resolve()


def varying_of(names: Sequence[str], isolate: bool, *, alone: bool = True) -> Varying:
    """Return the variations with these names that are possible here. One that is named and needs a copy gets one.

    Raises UnknownNameError for a variation that does not exist, UsageError if none of them is possible here.
    """
    chosen = select(load_variations(), names)
    isolate = isolate or any(one.needs == "isolate" and one.id in names for one in chosen)
    varying = offered(chosen, isolate=isolate, alone=alone)
    if chosen and not varying.varying:
        reasons = "; ".join(f"{name}: {reason.text()}" for name, reason in varying.not_varied)
        raise UsageError(
            f"none of the requested variations is possible here ({reasons})", "Choose a different variation."
        )
    return varying


def _each_once(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def refuse_unfinished(options: RunOptions) -> None:
    """Raise UsageError for what a run that is ended early does not leave."""
    if options.until is None or not (options.artifacts or options.loss_pattern):
        return
    if options.artifacts:
        message = "--until cannot be combined with --artifact: a run that is ended early has not written its files"
    else:
        message = "--until cannot be combined with --loss-pattern: printed losses do not show which step they are of"
    raise UsageError(message, "Remove one of them.")


def recipes_of(names: Sequence[str], options: Mapping[str, Any], devices: Collection[Device]) -> tuple[Recipe, ...]:
    """Return the recipes with these names, ``none`` by default, with the options of ``flag_options``.

    Raises UsageError for two recipes with one name, and as load_recipe does.
    """
    catalogue = load_catalogue()
    changes = {"seed": options["seed"], "add": options["flags"], "remove": options["no_flags"]}
    loaded = [load_recipe(name, catalogue, devices=devices, **changes) for name in dict.fromkeys(names or ["none"])]
    recipe_names = [recipe.name for recipe in loaded]
    duplicate = next((name for name in recipe_names if recipe_names.count(name) > 1), None)
    if duplicate:
        raise UsageError(f"two recipes have the name {duplicate!r}", "Rename one of them.")
    return tuple(loaded)


def jobs_of(jobs: int | None, devices: tuple[str, ...], runs: int) -> Jobs:
    """Return the slots of so many runs on this machine. Raises UsageError; see divide."""
    return divide(jobs, devices, runs, sorted(os.sched_getaffinity(0)), cpu_quota())


def settings_of(
    after_dashes: tuple[str, ...], recipes: tuple[Recipe, ...], runs: int, *, here: bool = True, **options: Any
) -> Settings:
    """Return the settings that the options of ``target_options`` and the declared ones ask for.

    Programs are looked for on this machine if runs are done ``here``.
    """
    mark, out = new_results(options["out"])
    jobs = jobs_of(options.get("jobs", 1), options.get("devices", ()), runs)
    chosen = RunOptions(**{name: options[name] for name in DECLARED if options.get(name) is not None})
    chosen = replace(chosen, vary=_each_once(chosen.vary), artifacts=_each_once(chosen.artifacts))
    isolate = chosen.isolate or chosen.isolate_root is not None or jobs.apart
    varying = varying_of(chosen.vary, isolate, alone=not jobs.apart)
    refuse_unfinished(chosen)
    target = resolve_target(options["words"], after_dashes, options["module"], options["python"], here=here)
    return Settings(
        **{**values_of(chosen), "isolate": isolate or any(one.needs == "isolate" for one in varying.varying)},
        target=target,
        recipes=recipes,
        runs=runs,
        out=out,
        mark=mark,
        cwd=Path(os.getcwd()),
        command=explicit_command(target),
        varying=varying,
        jobs=jobs,
    )
