"""``detaudit environments``: list the environments that comparisons built, and remove them."""

import click

from detaudit.cli.help import Command
from detaudit.environments import build
from detaudit.report.plain import line

_EXAMPLES = (
    ("how much do they take?", "detaudit environments"),
    ("remove all", "detaudit environments --clear"),
)


@click.command(cls=Command, examples=_EXAMPLES)
@click.option("--clear", is_flag=True, help="Remove all of them.")
def command(*, clear: bool) -> None:
    """List the environments that `detaudit compare --requirements` built, and the space that they take."""
    kept = build.environments()
    if clear:
        build.clear()
    for folder, size in kept:
        click.echo(f"{'removed ' if clear else ''}{line(str(folder))}  {size / 1e6:,.0f} MB")
    if not kept:
        click.echo(f"no environments in {line(str(build.cache()))}", err=True)
