"""From the options of a command line to the settings of an audit."""

import os
import re
import secrets
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from detaudit import redact, store
from detaudit.cli.options import output_rules
from detaudit.config.flags import Device, load_catalogue
from detaudit.config.options import Until
from detaudit.config.recipes import Recipe, load_recipe
from detaudit.config.variations import load_variations, select
from detaudit.errors import UsageError
from detaudit.launch.plan import Settings
from detaudit.launch.slots import Jobs, cpu_quota, divide
from detaudit.launch.target import Target, resolve_target
from detaudit.launch.vary import Varying, offered
from detaudit.runs import files, printed


def command_line() -> tuple[str, ...]:
    """Return the command as the user typed it, for the report, without secrets."""
    return redact.command(("detaudit", *sys.argv[1:]))


def explicit_command(target: Target) -> tuple[str, ...]:
    """Return the command with the Python that was found, so that the report names it and a resumption takes it too."""
    words = command_line()
    return (*words[:2], "--python", target.python, *words[2:]) if target.found else words


def loss_regex(text: str | None) -> re.Pattern[str] | None:
    """Return the regex of --loss-pattern, None if there is none. Raises UsageError if it is invalid."""
    return printed.compiled(text) if text is not None else None


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


def refuse_unfinished(until: Until | None, artifacts_: Sequence[str], loss_pattern: str | None) -> None:
    """Raise UsageError for what a run that is ended early does not leave."""
    if until is None or not (artifacts_ or loss_pattern):
        return
    if artifacts_:
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
    found = [recipe.name for recipe in loaded]
    duplicate = next((name for name in found if found.count(name) > 1), None)
    if duplicate:
        raise UsageError(f"two recipes have the name {duplicate!r}", "Rename one of them.")
    return tuple(loaded)


def jobs_of(jobs: int | None, devices: tuple[str, ...], runs: int) -> Jobs:
    """Return the slots of so many runs on this machine. Raises UsageError; see divide."""
    return divide(jobs, devices, runs, sorted(os.sched_getaffinity(0)), cpu_quota())


def settings_of(
    after_dashes: tuple[str, ...], recipes: tuple[Recipe, ...], runs: int, *, here: bool = True, **options: Any
) -> Settings:
    """Return the settings that the options of ``run_options``, ``target_options`` and ``vary_option`` ask for.

    Programs are looked for on this machine if runs are done ``here``.
    """
    mark, out = new_results(options["out"])
    jobs = jobs_of(options.get("jobs", 1), options.get("devices", ()), runs)
    isolate = options["isolate"] or options["isolate_root"] is not None or jobs.apart
    vary = tuple(dict.fromkeys(options.get("vary", ())))
    varying = varying_of(vary, isolate, alone=not jobs.apart)
    until = options.get("until")
    refuse_unfinished(until, options["artifacts_"], options["loss_pattern"])
    target = resolve_target(options["words"], after_dashes, options["module"], options["python"], here=here)
    return Settings(
        target=target,
        recipes=recipes,
        runs=runs,
        out=out,
        mark=mark,
        cwd=Path(os.getcwd()),
        command=explicit_command(target),
        timeout=options["timeout"],
        until=until,
        fail_fast=options.get("fail_fast", False),
        isolate=isolate or any(one.needs == "isolate" for one in varying.varying),
        isolate_root=options["isolate_root"],
        stages=options["stages"],
        loss_pattern=loss_regex(options["loss_pattern"]),
        artifacts=files.check(options["artifacts_"]),
        files=not options["no_files"],
        outputs=output_rules(options),
        vary=vary,
        varying=varying,
        jobs=jobs,
    )
