"""``detaudit run``: check whether a training is deterministic."""

from dataclasses import replace
from typing import Any

import click

from detaudit.auditor.audit import Auditor
from detaudit.cli import complete
from detaudit.cli.execute import Shown, audit
from detaudit.cli.options import (
    FLAGS,
    RUNS,
    TargetCommand,
    flag_options,
    jobs_options,
    option,
    run_options,
    target_options,
    until_option,
    vary_option,
)
from detaudit.cli.settings import settings_of
from detaudit.errors import UsageError
from detaudit.launch.local import LocalLauncher
from detaudit.launch.plan import Settings
from detaudit.recipe import machine
from detaudit.recipe.flags import load_catalogue
from detaudit.recipe.recipes import load_recipe

_EXAMPLES = (
    ("is it deterministic?", "detaudit run train.py"),
    ("the script's own arguments follow --", "detaudit run train.py --runs 3 -- --lr 0.1 --epochs 2"),
    ("does a recipe make it deterministic?", "detaudit run train.py --recipe none --recipe seeds --recipe all"),
    ("a module, or any command that trains", "detaudit run -m pkg.train"),
    ("", "detaudit run -- torchrun --nproc-per-node 2 train.py"),
    ("vary hash seeds, clocks, addresses, ... from run to run", "detaudit run train.py --vary all"),
    ("a report for a browser", "detaudit run train.py --format html > report.html"),
)


@click.command(cls=TargetCommand, options_metavar="[OPTIONS]", examples=_EXAMPLES)
@target_options
@option("--runs", group=RUNS, default=5, show_default=True, type=click.IntRange(1), metavar="N",
        help="Number of runs per recipe.")  # fmt: skip
@option("--recipe", "recipes", group=FLAGS, multiple=True, metavar="NAME|FILE", shell_complete=complete.recipes,
        help="Recipe to apply: none, seeds, all, any other from `detaudit recipes`, or a YAML file. Repeatable. "
        "[default: none]")  # fmt: skip
@flag_options("every recipe")
@option("--fail-fast", group=RUNS, is_flag=True, help="Stop running a recipe as soon as two runs differ.")
@option("--full", group=RUNS, is_flag=True,
        help="Let every run go to its end. [default: if a training takes more than 10 s, each run goes 4 times "
        "as far as the last, until two differ or one goes to its end]")  # fmt: skip
@jobs_options
@vary_option
@until_option
@run_options
def command(format_: str, quiet: bool, verbose: bool, **options: Any) -> int:
    """Check whether a training script is deterministic.

    Runs the unmodified script several times in fresh processes and compares the weights and the loss at every step,
    bit for bit.
    """
    settings = _settings(**options)
    shown = Shown(format_, quiet, verbose)
    return audit(settings, lambda observer: Auditor(settings, LocalLauncher(), observer), shown)


def _settings(
    after_dashes: tuple[str, ...], recipes: tuple[str, ...], runs: int, full: bool, **options: Any
) -> Settings:
    if full and options["until"] is not None:
        raise UsageError("--full cannot be combined with --until, which ends all runs", "Remove one of them.")
    catalogue = load_catalogue()
    changes = {"seed": options["seed"], "add": options["flags"], "remove": options["no_flags"]}
    loaded = [
        load_recipe(name, catalogue, devices=machine.devices(), **changes)
        for name in dict.fromkeys(recipes or ["none"])
    ]
    names = [recipe.name for recipe in loaded]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate:
        raise UsageError(f"two recipes have the name {duplicate!r}", "Rename one of them.")
    stepwise = not (full or options["until"] or options["vary"])
    return replace(settings_of(after_dashes, tuple(loaded), runs, **options), stepwise=stepwise)
