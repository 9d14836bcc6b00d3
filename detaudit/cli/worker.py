"""``detaudit worker``: do one run of a plan on this machine."""

import secrets
import signal
from pathlib import Path

import click

from detaudit.cli.help import Command
from detaudit.cli.options import OUTPUT, RUNS, option, python_option, quiet_option, verbose_option
from detaudit.cli.places import read_plan_at, storage_option
from detaudit.cli.progress import ProgressLine
from detaudit.errors import UsageError
from detaudit.launch.local import LocalLauncher
from detaudit.launch.processes import Reaper
from detaudit.model import Run
from detaudit.model.fact import count
from detaudit.model.problems import errors
from detaudit.model.wording import duration
from detaudit.remote.storage import open_storage
from detaudit.remote.worker import SCRATCH, Worker, store
from detaudit.report.messages import statuses

_EXAMPLES = (
    ("run 3 of a plan, stored in a shared folder", "detaudit worker plan.json --run 3 --out /shared/runs"),
    ("the first run, stored in a bucket", "detaudit worker s3://audits/plan.json --index 0 --out s3://audits/digits"),
)


@click.command(cls=Command, options_metavar="[OPTIONS]", examples=_EXAMPLES)
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
def command(
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
        worker = Worker(planned, Path.cwd(), LocalLauncher(), progress, mark, python, scratch.resolve())
        chosen = number if number is not None else (index or 0) + 1
        stored = store(worker, chosen, storage)
    ended = "was stored before, and is not done again" if stored.run is None else _ended(stored.run)
    click.echo(f"run {chosen} of {planned.total} {ended}: {stored.name} in {storage.url}", err=True)


def _ended(run: Run) -> str:
    why = f" ({errors(run.errors)})" if run.errors else ""
    return f"{statuses.NAMES[run.status]} after {duration(run.wall_s)}, {count(run.steps, 'step')}{why}"


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
