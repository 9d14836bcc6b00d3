"""``detaudit report``: print the report of an earlier audit or check."""

from pathlib import Path

import click

from detaudit.auditor import store
from detaudit.cli.options import format_option
from detaudit.cli.output import print_report, rendered
from detaudit.errors import UsageError


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="[DIR]", required=False)
@click.option("--last", is_flag=True, help="Print the newest report in .detaudit.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write the report to a file.")  # fmt: skip
@format_option()
def command(folder: Path | None, last: bool, output: Path | None, format_: str) -> None:
    """Print the report of the audit or check in DIR again."""
    if (folder is None) != last:
        raise UsageError("name a results folder, or pass --last", "detaudit report .detaudit/20261121-145042-24652d70")
    place = store.newest() if folder is None else folder
    report = store.load_report(place)
    results = place if place.is_dir() else place.parent
    if output is None:
        print_report(report, format_, results)
    else:
        store.write(output, rendered(report, format_, results).encode(errors="backslashreplace"), shared=True)
