"""``detaudit plan``: write down the runs of an audit, for any machine."""

import os
from pathlib import Path
from typing import Any

import click

from detaudit import store
from detaudit.cli.options import (
    COMPARED,
    OUTPUT,
    RUNS,
    TargetCommand,
    compared_options,
    declared,
    flag_options,
    option,
    recipes_option,
    runs_option,
    start_options,
    target_options,
)
from detaudit.cli.settings import recipes_of, settings_of
from detaudit.config.flags import DEVICES
from detaudit.errors import UsageError
from detaudit.model.stage import Records
from detaudit.remote import plan as state
from detaudit.remote.plan import plan_of, to_file

_EXAMPLES = (
    ("eight runs, wherever they will be done", "detaudit plan train.py --runs 8 -o plan.json"),
    ("with variables", "detaudit plan train.py --env WANDB_MODE=offline --env DATA_DIR -o plan.json"),
)  # fmt: skip


@click.command(cls=TargetCommand, options_metavar="[OPTIONS]", examples=_EXAMPLES)
@target_options
@runs_option
@recipes_option
@flag_options("every recipe")
@declared("until")
@start_options
@option("--env", "variables", group=RUNS, multiple=True, metavar="NAME[=VALUE]",
        help="Set a variable in every run, or take it over from the machine that does the run. Repeatable. Runs have "
        "no other variables than these, those of the machine for users, paths and devices, and here set ones that "
        "affect determinism.")  # fmt: skip
@compared_options
@option("--records", group=COMPARED, type=click.Choice([one.value for one in Records]), metavar="logs|trees",
        default=Records.LOGS.value, show_default=True, help="What `detaudit join` reads of each run: its event logs, "
        "or trees of digests, by which only runs that differ need their event logs.")  # fmt: skip
@option("-o", "--output", group=OUTPUT, required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
        help="Write the plan to this file.")  # fmt: skip
def command(
    variables: tuple[str, ...], output: Path, recipes: tuple[str, ...], runs: int, records: str, **options: Any
) -> None:
    """Write a plan of runs, for `detaudit worker` on other machines.

    The plan has all that makes runs equal: the command, the recipes, the variables, and the digests of the Python
    files in this folder. Each run has a number, from 1.
    """
    loaded = recipes_of(recipes, options, DEVICES)  # of the machines that will do the runs
    settings = settings_of(options.pop("after_dashes"), loaded, runs, out=None, here=False, **options)
    given = dict(map(_variable, variables))
    values = {name: value for name, value in given.items() if value is not None}
    plan = plan_of(
        settings,
        python=options["python"],
        variables={**state.planned_variables(os.environ), **values},
        passed=tuple(sorted(given.keys() - values.keys())),
        records=Records(records),
    )
    store.write(output, to_file(plan), instead="another --output")
    click.echo(f"plan {plan.id} with runs 1 to {plan.total}: {output}", err=True)


def _variable(text: str) -> tuple[str, str | None]:
    name, given, value = text.partition("=")
    if not name or name.startswith("DETAUDIT_") or name == "PYTHONPATH":
        raise UsageError(f"--env {text!r} does not name a variable that can be set", "Write it as in --env NAME=VALUE.")
    return name, value if given else None
