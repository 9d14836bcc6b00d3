"""``detaudit report``: print the report of an earlier audit or check."""

from pathlib import Path

import click

from detaudit.auditor import store
from detaudit.cli.options import format_option
from detaudit.cli.output import print_report


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@format_option()
def command(folder: Path, format_: str) -> None:
    """Print the report of the audit or check in DIR again."""
    print_report(store.load_report(folder), format_)
