"""``detaudit plan``, ``worker`` and ``join``: runs on machines that share nothing but a folder or a bucket."""

import os
import re
import secrets
import shutil
import signal
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import click

from detaudit import store
from detaudit.cli.execute import print_report
from detaudit.cli.help import Command
from detaudit.cli.options import (
    COMPARED,
    OUTPUT,
    RUNS,
    TargetCommand,
    across_option,
    compared_options,
    declared,
    flag_options,
    format_option,
    option,
    out_option,
    python_option,
    quiet_option,
    recipes_option,
    runs_option,
    start_options,
    target_options,
    verbose_option,
)
from detaudit.cli.progress import ProgressLine
from detaudit.cli.settings import new_results, recipes_of, settings_of
from detaudit.config.flags import DEVICES
from detaudit.config.options import Until
from detaudit.errors import UnknownNameError, UsageError
from detaudit.launch.local import LocalLauncher
from detaudit.launch.processes import Reaper
from detaudit.model import Across, Run, exit_code
from detaudit.model.fact import count, duration
from detaudit.model.problems import errors
from detaudit.model.stage import STATUSES, Records
from detaudit.remote import plan as state
from detaudit.remote.join import Gatherer
from detaudit.remote.join import join as joined
from detaudit.remote.plan import Plan, plan_of, read_plan, to_file
from detaudit.remote.storage import open_storage
from detaudit.remote.worker import SCRATCH, Worker
from detaudit.remote.worker import store as store_run

# Where plans and runs are kept: folders, and URLs of buckets.

storage_option = option("--out", "url", group=OUTPUT, required=True, metavar="URL",
                        help="Store the run here: a folder that machines share, or a URL such as "
                        "s3://bucket/folder.")  # fmt: skip


def read_plan_at(location: str) -> Plan:
    """Return the plan in a file, or at a URL. Raises UnknownNameError if there is none, and as read_plan does."""
    hint = "Write one with `detaudit plan`."
    if "://" not in location:
        try:
            return read_plan(Path(location).read_bytes(), location)
        except OSError as error:
            raise UnknownNameError(f"no plan {location}: {error.strerror}", hint) from error
    folder, _, name = location.rpartition("/")
    storage = open_storage(folder)
    if name not in storage.names():
        raise UnknownNameError(f"no plan {name} in {storage.url}", hint)
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary, "plan.json")
        storage.fetch(name, copy)
        return read_plan(copy.read_bytes(), location)


# detaudit plan

_PLAN_EXAMPLES = (
    ("eight runs, wherever they will be done", "detaudit plan train.py --runs 8 -o plan.json"),
    ("with variables", "detaudit plan train.py --env WANDB_MODE=offline --env DATA_DIR -o plan.json"),
)  # fmt: skip


@click.command(cls=TargetCommand, options_metavar="[OPTIONS]", examples=_PLAN_EXAMPLES)
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
def plan(
    variables: tuple[str, ...], output: Path, recipes: tuple[str, ...], runs: int, records: str, **options: Any
) -> None:
    """Write a plan of runs, for `detaudit worker` on other machines.

    The plan has all that makes runs equal: the command, the recipes, the variables, and the digests of the Python
    files in this folder. Each run has a number, from 1.
    """
    loaded = recipes_of(recipes, options, DEVICES)  # of the machines that will do the runs
    settings = settings_of(options.pop("after_dashes"), loaded, runs, out=None, here=False, **options)
    assignments = dict(map(_variable, variables))
    values = {name: value for name, value in assignments.items() if value is not None}
    planned = plan_of(
        settings,
        python=options["python"],
        variables={**state.planned_variables(os.environ), **values},
        passed=tuple(sorted(assignments.keys() - values.keys())),
        records=Records(records),
    )
    store.write(output, to_file(planned), instead="another --output")
    click.echo(f"plan {planned.id} with runs 1 to {planned.total}: {output}", err=True)


def _variable(text: str) -> tuple[str, str | None]:
    name, separator, value = text.partition("=")
    if not name or name.startswith("DETAUDIT_") or name == "PYTHONPATH":
        raise UsageError(f"--env {text!r} does not name a variable that can be set", "Write it as in --env NAME=VALUE.")
    return name, value if separator else None


# detaudit worker

_WORKER_EXAMPLES = (
    ("run 3 of a plan, stored in a shared folder", "detaudit worker plan.json --run 3 --out /shared/runs"),
    ("the first run, stored in a bucket", "detaudit worker s3://audits/plan.json --index 0 --out s3://audits/digits"),
)


@click.command(cls=Command, options_metavar="[OPTIONS]", examples=_WORKER_EXAMPLES)
@click.argument("plan", metavar="PLAN")
@option("--run", "number", group=RUNS, type=click.IntRange(1), metavar="K", help="Do run K of the plan, from 1.")
@option("--index", group=RUNS, type=click.IntRange(0), metavar="I", help="The same, counted from 0.")
@storage_option
@python_option
@option("--scratch", group=OUTPUT, type=click.Path(exists=True, file_okay=False, path_type=Path), default=SCRATCH,
        show_default=True, metavar="DIR", help="Write to a folder in DIR until the run is stored. Use the same on all "
        "machines: the length of a path moves addresses.")  # fmt: skip
@quiet_option
@verbose_option
def worker(
    plan: str,
    number: int | None,
    index: int | None,
    url: str,
    python: str | None,
    scratch: Path,
    quiet: bool,
    verbose: bool,
) -> None:
    """Do one run of a plan in this folder, and store what it recorded.

    PLAN is a file, or the URL of one. A run that is stored already is not done again.

    Exit status: 0 if a run is stored, however the training ended; 2 if the plan cannot be carried out here.
    """
    if (number is None) == (index is None):
        raise UsageError("name one run", "Write --run 1 for the first, or --index 0.")
    for name in (signal.SIGTERM, signal.SIGHUP):  # schedulers end jobs by the first
        signal.signal(name, _interrupt)
    planned, storage, mark = read_plan_at(plan), open_storage(url), secrets.token_hex(4)
    with ProgressLine(quiet, verbose=verbose) as progress, Reaper(mark):
        made = Worker(planned, Path.cwd(), LocalLauncher(), progress, mark, python, scratch.resolve())
        chosen = number if number is not None else (index or 0) + 1
        stored = store_run(made, chosen, storage)
    ended = "was stored before, and is not done again" if stored.run is None else _ended(stored.run)
    click.echo(f"run {chosen} of {planned.total} {ended}: {stored.name} in {storage.url}", err=True)


def _ended(run: Run) -> str:
    why = f" ({errors(run.errors)})" if run.errors else ""
    return f"{STATUSES[run.status]} after {duration(run.wall_s)}, {count(run.steps, 'step')}{why}"


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


# detaudit join

_JOIN_EXAMPLES = (
    ("the report on the runs that are there", "detaudit join /shared/runs"),
    ("wait for the others, for up to two hours", "detaudit join /shared/runs --wait 2h"),
    ("one of several plans in a bucket", "detaudit join s3://audits/digits --plan plan.json"),
)


@click.command(cls=Command, options_metavar="[OPTIONS]", examples=_JOIN_EXAMPLES)
@click.argument("url", metavar="URL")
@option("--plan", group=RUNS, metavar="PLAN", help="Judge the runs of this plan: its file, or the beginning of its ID.")
@option("--wait", group=RUNS, metavar="TIME", help="Wait for runs that are not there, such as 90s, 15m or 2h.")
@across_option
@out_option
@format_option()
@quiet_option
def join(url: str, plan: str | None, wait: str | None, across: str, out: Path | None, format_: str, quiet: bool) -> int:
    """Judge the runs of a plan, as `detaudit run` would if it had started them.

    URL is where the workers stored them. Each run counts once, and only if its archive is whole.
    """
    wait_s = _seconds(wait)
    known = read_plan_at(plan) if plan is not None and not re.fullmatch("[0-9a-f]{1,16}", plan) else None
    _, results = new_results(out)
    storage = open_storage(url)
    store.prepare(results)
    taken = results / "taken"
    try:
        taken.mkdir(mode=0o700)
        gatherer = Gatherer(storage, taken, known.id if known is not None else plan or "", known, _waiting(quiet))
        report = joined(gatherer.gather(wait_s), results, Path.cwd(), Across(across))
    except BaseException:
        shutil.rmtree(results, ignore_errors=True)
        raise
    shutil.rmtree(taken, ignore_errors=True)
    print_report(report, format_, results)
    return exit_code(report)


def _seconds(wait: str | None) -> float:
    if wait is None:
        return 0.0
    try:
        until = Until.parse(wait)
    except ValueError:
        until = Until(step=0)
    if until.seconds is None:
        raise UsageError(f"--wait {wait!r} is not a time", "Write it as in --wait 90s, 15m or 2h.")
    return until.seconds


def _waiting(quiet: bool) -> Callable[[Collection[int]], None]:
    def say(missing: Collection[int]) -> None:
        if not quiet:
            click.echo(f"waiting for runs {', '.join(map(str, missing))}", err=True)

    return say
