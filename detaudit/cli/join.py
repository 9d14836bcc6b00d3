"""``detaudit join``: judge the runs that workers stored."""

import re
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

import click

from detaudit import store
from detaudit.cli.execute import print_report
from detaudit.cli.help import Command
from detaudit.cli.options import RUNS, across_option, format_option, option, out_option, quiet_option
from detaudit.cli.places import read_plan_at
from detaudit.cli.settings import new_results
from detaudit.config.options import Until
from detaudit.errors import UsageError
from detaudit.model import Across, exit_code
from detaudit.remote.join import Gatherer, join
from detaudit.remote.storage import open_storage

_EXAMPLES = (
    ("the report on the runs that are there", "detaudit join /shared/runs"),
    ("wait for the others, for up to two hours", "detaudit join /shared/runs --wait 2h"),
    ("one of several plans in a bucket", "detaudit join s3://audits/digits --plan plan.json"),
)


@click.command(cls=Command, options_metavar="[OPTIONS]", examples=_EXAMPLES)
@click.argument("url", metavar="URL")
@option("--plan", group=RUNS, metavar="PLAN", help="Judge the runs of this plan: its file, or the beginning of its ID.")
@option("--wait", group=RUNS, metavar="TIME", help="Wait for runs that are not there, such as 90s, 15m or 2h.")
@across_option
@out_option
@format_option()
@quiet_option
def command(
    url: str, plan: str | None, wait: str | None, across: str, out: Path | None, format_: str, quiet: bool
) -> int:
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
        report = join(gatherer.gather(wait_s), results, Path.cwd(), Across(across))
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
        found = Until.parse(wait)
    except ValueError:
        found = Until(step=0)
    if found.seconds is None:
        raise UsageError(f"--wait {wait!r} is not a time", "Write it as in --wait 90s, 15m or 2h.")
    return found.seconds


def _waiting(quiet: bool) -> Callable[[Collection[int]], None]:
    def say(missing: Collection[int]) -> None:
        if not quiet:
            click.echo(f"waiting for runs {', '.join(map(str, missing))}", err=True)

    return say
