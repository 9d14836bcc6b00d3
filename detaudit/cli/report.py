"""``detaudit report``: print an old audit or check again."""

from pathlib import Path

import click

from detaudit.auditor import store
from detaudit.cli.output import tell
from detaudit.report import FORMATS


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), default="table", show_default=True)
def command(folder: Path, format_: str) -> None:
    """Print the audit or the check in DIR, a folder that detaudit wrote, once more."""
    tell(store.load_report(folder), format_)
