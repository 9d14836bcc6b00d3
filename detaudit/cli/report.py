"""``detaudit report``: print the report of an earlier audit or check."""

from pathlib import Path

import click

from detaudit.auditor import store
from detaudit.cli import complete
from detaudit.cli.help import Command
from detaudit.cli.options import OUTPUT, format_option, option
from detaudit.cli.output import print_report, rendered
from detaudit.errors import UsageError

_EXAMPLES = (
    ("the newest report again", "detaudit report --last"),
    ("as one HTML file with figures", "detaudit report --last --format html -o report.html"),
    ("an earlier one", "detaudit report .detaudit/20261121-145042-24652d70"),
)


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("folder", type=click.Path(path_type=Path), metavar="[DIR]", required=False,
                shell_complete=complete.results)  # fmt: skip
@option("--last", group="Which report", is_flag=True, help="Print the newest report in .detaudit.")
@option("-o", "--output", group=OUTPUT, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
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
        store.write(
            output, click.unstyle(rendered(report, format_, results)).encode(errors="backslashreplace"), shared=True
        )
