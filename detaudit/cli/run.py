"""``detaudit run``: check whether a training is deterministic."""

from dataclasses import replace
from typing import Any

import click

from detaudit.audit import Auditor
from detaudit.cli.engine import engine_runs, refuse_evidence, refuse_spread
from detaudit.cli.execute import Shown, audit
from detaudit.cli.options import (
    RUNS,
    TargetCommand,
    declared,
    engine_options,
    flag_options,
    jobs_options,
    option,
    recipes_option,
    run_options,
    runs_option,
    spread_option,
    target_options,
)
from detaudit.cli.settings import recipes_of, settings_of
from detaudit.config import choice
from detaudit.config.flags import DEVICES
from detaudit.errors import UsageError
from detaudit.launch.local import LocalLauncher
from detaudit.launch.plan import Settings
from detaudit.model import Across

_EXAMPLES = (
    ("is it deterministic?", "detaudit run train.py"),
    ("the script's own arguments follow --", "detaudit run train.py --runs 3 -- --lr 0.1 --epochs 2"),
    ("does a recipe make it deterministic?", "detaudit run train.py --recipe none --recipe seeds --recipe all"),
    ("a module, or any command that trains", "detaudit run -m pkg.train"),
    ("", "detaudit run -- torchrun --nproc-per-node 2 train.py"),
    (
        "on other machines, with a Python there",
        "detaudit run train.py --engine ssh:node1,node2 --python /opt/env/bin/python",
    ),
    ("does each of these machines repeat its result?", "detaudit run train.py --engine ssh:n1,n2,n3 --spread"),
    ("vary hash seeds, clocks, addresses, ... from run to run", "detaudit run train.py --vary all"),
    ("a report for a browser", "detaudit run train.py --format html > report.html"),
    ("an archive to keep, with all hashes", "detaudit run train.py --evidence audit.zip"),
)


@click.command(cls=TargetCommand, options_metavar="[OPTIONS]", examples=_EXAMPLES)
@target_options
@runs_option
@recipes_option
@flag_options("every recipe")
@declared("fail_fast")
@option("--full", group=RUNS, is_flag=True,
        help="Let every run go to its end. [default: if a training takes more than 5 s, the first run is ended then, "
        "and the next one at 64 times as many steps, unless two differ]")  # fmt: skip
@jobs_options
@engine_options
@spread_option
@declared("vary", "until")
@run_options
@declared("evidence")
def command(format_: str, quiet: bool, verbose: bool, engine: str | None, across: str, **options: Any) -> int:
    """Check whether a training script is deterministic.

    Runs the unmodified script several times in fresh processes and compares the weights and the loss at every step,
    bit for bit.
    """
    settings = _settings(here=engine is None, **options)
    settings, shown = replace(settings, across=Across(across)), Shown(format_, quiet, verbose)
    refuse_spread(options["spread"], engine)
    if engine is not None:
        refuse_evidence(settings.evidence)
        return engine_runs().audit(settings, engine, options, shown)
    return audit(settings, lambda observer: Auditor(settings, LocalLauncher(), observer), shown)


def _settings(
    after_dashes: tuple[str, ...], recipes: tuple[str, ...], runs: int, full: bool, **options: Any
) -> Settings:
    if full and options["until"] is not None:
        raise UsageError("--full cannot be combined with --until, which ends all runs", "Remove one of them.")
    loaded = recipes_of(recipes, options, choice.devices() if options["here"] else DEVICES)
    stepwise = not (full or options["until"] or options["vary"])
    return replace(settings_of(after_dashes, loaded, runs, **options), stepwise=stepwise)
