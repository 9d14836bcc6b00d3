"""``detaudit compare``: show where two recordings of a training first differ."""

from pathlib import Path

import click

from detaudit import advice
from detaudit.baseline import ended, load, location
from detaudit.cli import completion
from detaudit.cli.execute import print_report
from detaudit.cli.help import Command
from detaudit.cli.options import COMPARED, declared, format_option, option
from detaudit.cli.settings import command_line
from detaudit.compare import compare
from detaudit.config.options import compiled
from detaudit.model import exit_code
from detaudit.report.plain import line

_EXAMPLES = (
    ("two audits, such as of two commits", "detaudit compare before after"),
    ("a baseline and an audit", "detaudit compare detaudit.lock.json#digits .detaudit/20261121-145042-24652d70"),
)


@click.command(cls=Command, options_metavar="[OPTIONS]", examples=_EXAMPLES)
@click.argument("a", metavar="A", shell_complete=completion.recordings)
@click.argument("b", metavar="B", shell_complete=completion.recordings)
@option("--recipe", group=COMPARED, metavar="NAME",
        help="Recipe to compare, if the audit has several. [default: the first]")  # fmt: skip
@option("--loss-pattern", group=COMPARED, metavar="REGEX",
        help="Also compare losses read from stdout with this regex.")  # fmt: skip
@option("--until", group=COMPARED, type=click.IntRange(1), metavar="STEP", help="Compare nothing after this step.")
@declared("evidence")
@format_option()
def command(
    a: str,
    b: str,
    recipe: str | None,
    loss_pattern: str | None,
    until: int | None,
    evidence: Path | None,
    format_: str,
) -> int:
    """Compare two recordings of a training step by step, bit for bit.

    A and B are results folders or baselines (detaudit.lock.json#NAME). Of an audit, the first finished run is
    compared.

    Exit status: 0 identical, 1 different, 125 nothing to compare.
    """
    regex = compiled(loss_pattern) if loss_pattern is not None else None
    ours, theirs = load(a, recipe, regex), load(b, recipe, regex)
    comparison = compare(
        *(side.recording if until is None else ended(side.recording, until) for side in (ours, theirs)),
        names=(a, b),
        command=command_line(),
        warnings=(*ours.warnings, *theirs.warnings),
    )
    print_report(comparison, format_)
    if evidence is not None:
        from detaudit.evidence import pack  # which few need

        sides = {name: location(side) for name, side in zip(pack.SIDES, (a, b), strict=True)}
        pack.of_comparison(evidence, comparison, sides, Path.cwd())
        click.echo(f"evidence: {line(advice.shown(evidence))}", err=True)
    return exit_code(comparison)
