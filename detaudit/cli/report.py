"""``detaudit report``: print an old audit again."""

from pathlib import Path

import click

from detaudit.auditor import store
from detaudit.report import FORMATS, render


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), default="table", show_default=True)
def command(folder: Path, format_: str) -> None:
    """Print the audit in DIR, a folder that `detaudit run` wrote, once more."""
    click.echo(render(store.load(folder), format_), nl=False)
