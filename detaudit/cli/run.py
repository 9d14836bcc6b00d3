"""``detaudit run``: whether a training is deterministic."""

from typing import Any

import click

from detaudit.auditor.audit import Auditor
from detaudit.cli.common import TargetCommand, run_options, settings_of, target_options, vary_option
from detaudit.cli.execute import audit
from detaudit.errors import UsageError
from detaudit.launch.local import LocalLauncher
from detaudit.launch.plan import Settings
from detaudit.recipe import machine
from detaudit.recipe.flags import load_catalogue
from detaudit.recipe.recipes import load_recipe


@click.command(cls=TargetCommand, options_metavar="[OPTIONS]")
@target_options
@click.option("--runs", default=5, show_default=True, type=click.IntRange(1), help="How often each recipe is run.")
@click.option("--recipe", "recipes", multiple=True, metavar="NAME|FILE",
              help="What to hold still: none, seeds, all, another of `detaudit recipes`, or a YAML file; repeatable. "
              "[default: none]")  # fmt: skip
@click.option("--flag", "flags", multiple=True, metavar="ID[=VALUE]", help="Add one flag to every recipe.")
@click.option("--no-flag", "no_flags", multiple=True, metavar="ID", help="Take one flag out of every recipe.")
@click.option("--fail-fast", is_flag=True, help="Stop a recipe at the first two runs that differ.")
@vary_option
@run_options
@click.pass_context
def command(ctx: click.Context, /, format_: str, quiet: bool, **options: Any) -> int:
    """Tell whether a training script is deterministic.

    Runs it several times in cold processes, unmodified, and compares the weights and the loss at every step,
    bit for bit.
    """
    settings = _settings(ctx.meta.get("after_dashes", ()), **options)
    return audit(settings, lambda watcher: Auditor(settings, LocalLauncher(), watcher), format_=format_, quiet=quiet)


def _settings(after_dashes: tuple[str, ...], recipes: tuple[str, ...], runs: int, **options: Any) -> Settings:
    catalogue = load_catalogue()
    changes = {"seed": options["seed"], "add": options["flags"], "remove": options["no_flags"]}
    loaded = [
        load_recipe(name, catalogue, devices=machine.devices(), **changes)
        for name in dict.fromkeys(recipes or ["none"])
    ]
    names = [recipe.name for recipe in loaded]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise UsageError(f"two of the recipes are called {twice!r}", "Give one of them another name.")
    return settings_of(after_dashes, tuple(loaded), runs, **options)
