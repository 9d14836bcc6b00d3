"""The options that the subcommands which run trainings share."""

import os
import secrets
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from detaudit import wire
from detaudit.auditor import store
from detaudit.auditor.evidence import artifacts, printed
from detaudit.errors import UsageError
from detaudit.launch.offers import offered
from detaudit.launch.plan import Settings
from detaudit.launch.target import resolve_target
from detaudit.launch.vary import Varying
from detaudit.recipe.names import unknown
from detaudit.recipe.recipes import MAX_SEED, Recipe
from detaudit.recipe.variations import load_variations, select
from detaudit.report import FORMATS

F = TypeVar("F", bound=Callable[..., Any])


class TargetCommand(click.Command):
    """Keeps what follows ``--`` apart from the arguments before it, which click by itself would join."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click.Command.parse_args."""
        if "--" in args:
            at = args.index("--")
            args, ctx.meta["after_dashes"] = args[:at], tuple(args[at + 1 :])
        return super().parse_args(ctx, args)


def _stages(ctx: click.Context, option: click.Parameter, value: str) -> tuple[str, ...]:
    words = wire.STAGES if value == "all" else tuple(filter(None, (word.strip() for word in value.split(","))))
    wrong = [word for word in words if word not in wire.STAGES]
    if wrong or not words:
        raise unknown("stage", ", ".join(wrong), (*wire.STAGES, "all"))
    return tuple(stage for stage in wire.STAGES if stage in words)


_TARGET = [
    click.argument("words", nargs=-1, metavar="SCRIPT [-- ARGS]... | -m MODULE [-- ARGS]... | -- COMMAND..."),
    click.option("-m", "module", default="", metavar="MODULE", help="Run a module, as python -m does."),
]
_OPTIONS = [
    click.option("--seed", type=click.IntRange(0, MAX_SEED), help="The seed that recipes set. [default: 0]"),
    click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="S", help="End a run after S seconds."),
    click.option("--stages", default=",".join(wire.DEFAULT_STAGES), show_default=True, callback=_stages,
                 help="What is recorded of each step, or `all`, which adds backward."),
    click.option("--loss-pattern", metavar="REGEX",
                 help="Take the loss from stdout: the group `loss`, or the first one; `step` counts."),
    click.option("--artifact", "artifacts_", multiple=True, metavar="PATH",
                 help="Compare a file that the script writes; repeatable, globs allowed."),
    click.option("--isolate", is_flag=True, help="Give each run its own copy of the repository, at one path."),
    click.option("--isolate-root", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
                 help="Copy this folder instead; implies --isolate."),
    click.option("--python", metavar="EXE", help="The Python of your training, if it is not detaudit's own."),
    click.option("--out", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
                 help="Where results are kept. [default: .detaudit/<time>-<id>]"),
    click.option("--format", "format_", type=click.Choice(list(FORMATS)), default="table", show_default=True,
                 help="How the result is printed."),
    click.option("-q", "--quiet", is_flag=True, help="No progress on stderr."),
]  # fmt: skip


def target_options(command: F) -> F:
    """Give a command the arguments that name what is to be run."""
    for option in reversed(_TARGET):
        command = option(command)
    return command


def run_options(command: F) -> F:
    """Give a command the options that say how a run is started, what of it is compared, and where results go."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def vary_option(command: F) -> F:
    """Give a command the option that names what is to vary."""
    words = (
        "Let this be different in each run, the first one's held still; repeatable: all, or one of configs/variations."
    )
    return click.option("--vary", multiple=True, metavar="NAME", help=words)(command)


def varying_of(names: Iterable[str], isolate: bool) -> Varying:
    """Return what is to vary, as far as it can here; a folder of another name, asked for by name, is a copy.

    Raises UnknownNameError for a variation that does not exist, UsageError where none of those asked for can be had.
    """
    chosen = select(load_variations(), names)
    isolate = isolate or any(one.needs == "isolate" and one.id in names for one in chosen)
    varying = offered(chosen, isolate=isolate)
    if chosen and not varying.moving:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in varying.left_out)
        raise UsageError(f"nothing that was asked for can vary here ({reasons})", "Name another variation.")
    return varying


def settings_of(after_dashes: tuple[str, ...], recipes: tuple[Recipe, ...], runs: int, **options: Any) -> Settings:
    """Return the settings that the common options ask for."""
    mark = secrets.token_hex(4)
    isolate = options["isolate"] or options["isolate_root"] is not None
    vary = tuple(dict.fromkeys(options.get("vary", ())))
    varying = varying_of(vary, isolate)
    out = options["out"] or store.new_folder(mark)
    return Settings(
        target=resolve_target(options["words"], after_dashes, options["module"], options["python"]),
        recipes=recipes,
        runs=runs,
        out=out.resolve(),
        mark=mark,
        cwd=Path(os.getcwd()),
        command=("detaudit", *sys.argv[1:]),
        timeout=options["timeout"],
        fail_fast=options.get("fail_fast", False),
        isolate=isolate or any(one.needs == "isolate" for one in varying.moving),
        isolate_root=options["isolate_root"],
        stages=options["stages"],
        loss_pattern=printed.compiled(options["loss_pattern"]) if options["loss_pattern"] is not None else None,
        artifacts=artifacts.check(options["artifacts_"]),
        vary=vary,
        varying=varying,
    )
