"""``detaudit log``: print the event logs of a run as text."""

from pathlib import Path

import click
import msgspec

from detaudit import wire
from detaudit.cli import completion
from detaudit.cli.help import Command
from detaudit.errors import AuditNotFoundError
from detaudit.runs.log import logs
from detaudit.runs.log_text import entries

_EXAMPLES = (("what the first run recorded", "detaudit log .detaudit/20261121-145042-24652d70/runs/none/1"),)


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR", shell_complete=completion.results)
def command(folder: Path) -> None:
    """Print what the processes of a run recorded, a line of JSON each: DIR is the folder of the run, or of its logs."""
    paths = logs(folder) or logs(folder / wire.LOGS)
    if not paths:
        raise AuditNotFoundError(f"no event logs in {folder}", "Name the folder of a run: DIR/runs/RECIPE/NUMBER.")
    for path in paths:
        for fields in entries(path):
            click.echo(msgspec.json.encode(fields).decode())
