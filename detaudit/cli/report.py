"""``detaudit report``: print the report of an earlier audit or check, and send it to other programs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

import click

from detaudit import advice, redact, store
from detaudit.cli import completion
from detaudit.cli.errors import print_error
from detaudit.cli.execute import print_report, rendered
from detaudit.cli.help import Command
from detaudit.cli.options import OUTPUT, format_option, option
from detaudit.entry_points import DESTINATIONS, entry_point
from detaudit.errors import DetauditError, UsageError
from detaudit.judge.figures import figures
from detaudit.model import Audit, Check, Comparison, to_json
from detaudit.report import render
from detaudit.report.tracked import TrackedAudit, tracked

_EXAMPLES = (
    ("the newest report again", "detaudit report --last"),
    ("as one HTML file with figures", "detaudit report --last --format html -o report.html"),
    ("also to an MLflow server", "detaudit report --last --to mlflow:http://127.0.0.1:5000"),
    ("an earlier one", "detaudit report .detaudit/20261121-145042-24652d70"),
)


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("folder", type=click.Path(path_type=Path), metavar="[DIR]", required=False,
                shell_complete=completion.results)  # fmt: skip
@option("--last", group="Which report", is_flag=True, help="Print the newest report in .detaudit.")
@option("-o", "--output", group=OUTPUT, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
        help="Write the report to a file.")  # fmt: skip
@option("--to", "places", group=OUTPUT, multiple=True, metavar="PROGRAM:PLACE",
        help="Also send the report and the losses of its runs to an MLflow server (mlflow:URI) or a folder for "
        "TensorBoard (tensorboard:LOGDIR). Repeatable.")  # fmt: skip
@format_option()
def command(folder: Path | None, last: bool, output: Path | None, places: tuple[str, ...], format_: str) -> None:
    """Print the report of the audit or check in DIR again."""
    path = store.chosen(folder, last=last, command="detaudit report")
    destinations = [destination(text) for text in dict.fromkeys(places)]
    results = path if path.is_dir() else path.parent
    report = store.load_report(path)
    if not isinstance(report, Comparison):
        report = advice.in_folder(report, Path(advice.shown(results.absolute())))
    if output is None:
        print_report(report, format_, results)
    else:
        text = click.unstyle(rendered(report, format_, results))
        store.write(output, text.encode(errors="backslashreplace"), shared=True, instead="another --output")
    if isinstance(report, Comparison):
        if destinations:
            raise UsageError("--to sends audits and checks, no comparisons", "Name the folder of a side.")
    elif destinations:
        _send(report, results, destinations)


class Destination(Protocol):
    """A place to which audits can be sent. What was sent there before is replaced, and nothing else."""

    def send(self, audits: Sequence[TrackedAudit], documents: Mapping[str, str]) -> list[str]:
        """Send audits, with documents by the names of their files. Return where people can look at them.

        Raises ExportError, StorageError or UsageError if that fails.
        """


def destination(text: str) -> Destination:
    """Return the destination with this name, such as ``tensorboard:logs``.

    Raises UnknownNameError if there is none, UsageError for a place that it cannot use or a package that is missing.
    """
    name, _, location = text.partition(":")
    try:
        return cast(Destination, entry_point(DESTINATIONS, name, "destination")(location))
    except ImportError as error:
        raise UsageError(
            f"--to {name} needs a package that is not installed: {error}",
            f"Run `pip install 'detaudit[{name}]'` where detaudit is installed.",
        ) from error


def _send(report: Audit | Check, results: Path, destinations: Sequence[Destination]) -> None:
    """Send a report to each destination, also if one before it failed. The first error is raised at the end."""
    report_figures = figures(report, results, sampled=True)
    audits = tracked(report, report_figures)
    documents = {"report.json": to_json(report).decode(), "report.html": render(report, "html", report_figures)}
    failed: list[DetauditError] = []
    for one in destinations:
        try:
            for location in one.send(audits, documents):
                click.echo(f"exported to {redact.text(location)}", err=True)
        except DetauditError as error:
            failed.append(error)
    for other in failed[1:]:
        print_error(other)
    if failed:
        raise failed[0]
