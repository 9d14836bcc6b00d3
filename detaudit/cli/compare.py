"""``detaudit compare``: where two recordings of a training part."""

import sys

import click

from detaudit.auditor.baseline.load import load
from detaudit.auditor.compare import compare
from detaudit.auditor.evidence import printed
from detaudit.cli.output import tell
from detaudit.model import exit_code
from detaudit.report import FORMATS


@click.command(options_metavar="[OPTIONS]")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--recipe", metavar="NAME", help="Which recipe of an audit. [default: its first]")
@click.option("--loss-pattern", metavar="REGEX", help="Take the losses from stdout too, as `detaudit run` does.")
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), default="table", show_default=True,
              help="How the result is printed.")  # fmt: skip
def command(a: str, b: str, recipe: str | None, loss_pattern: str | None, format_: str) -> int:
    """Compare two recordings of a training step by step, bit for bit.

    A and B are folders that `detaudit run` wrote, or baselines: detaudit.lock.json#NAME. Of an audit it is the first
    run that finished. Exit status: 0 the same, 1 different, 125 nothing to compare.
    """
    losses = printed.compiled(loss_pattern) if loss_pattern is not None else None
    ours, theirs = load(a, recipe, losses), load(b, recipe, losses)
    found = compare(
        ours.recording,
        theirs.recording,
        names=(a, b),
        command=("detaudit", *sys.argv[1:]),
        warnings=(*ours.warnings, *theirs.warnings),
    )
    tell(found, format_)
    return exit_code(found)
