"""``detaudit evidence``: archive the results of an earlier audit, with the hashes of what it used."""

from pathlib import Path

import click

from detaudit import store
from detaudit.cli import completion
from detaudit.cli.help import Command
from detaudit.cli.options import OUTPUT, option
from detaudit.config.options import archive_path

_EXAMPLES = (
    ("archive the newest results", "detaudit evidence --last"),
    ("those of one audit, in a file", "detaudit evidence .detaudit/20261121-145042-24652d70 -o audit.zip"),
)


@click.command(cls=Command, options_metavar="[OPTIONS]", examples=_EXAMPLES)
@click.argument("folder", type=click.Path(path_type=Path), metavar="[DIR]", required=False,
                shell_complete=completion.results)  # fmt: skip
@option("--last", group="Which results", is_flag=True, help="Archive the newest results in .detaudit.")
@option("-o", "--output", group=OUTPUT, metavar="FILE.zip", help="The archive. [default: evidence-<name of DIR>.zip]")
def command(folder: Path | None, last: bool, output: str | None) -> None:
    """Write one archive of the audit or check in DIR: report, logs, and the hashes of all that its runs used.

    What was not hashed when the runs ended is hashed now, and marked. `--evidence` of the audit itself hashes then.
    """
    from detaudit.evidence import pack  # which takes long to import, as the page does

    path = store.chosen(folder, last=last, command="detaudit evidence")
    results = (path if path.is_dir() else path.parent).resolve()
    report = store.load_report(path)
    target = archive_path(output or f"evidence-{results.name}.zip")
    pack.of_results(target, report, results, Path.cwd())
    click.echo(f"evidence: {output or target.name}", err=True)
