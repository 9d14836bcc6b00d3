"""Print what an audit runs with, and finished reports, also to the step summary of GitHub Actions."""

import os
from collections.abc import Iterable
from pathlib import Path

import click

from detaudit import advice, store
from detaudit.cli.errors import print_error
from detaudit.cli.screen import width
from detaudit.errors import StorageError
from detaudit.judge.figures import figures
from detaudit.launch.target import Target, pytest_without_plugin
from detaudit.model import Report
from detaudit.model.figures import NO_FIGURES
from detaudit.report import DRAWN, render
from detaudit.report.plain import line

_SUMMARY = "GITHUB_STEP_SUMMARY"


def rendered(report: Report, format_: str, folder: Path | None, width: int | None = None) -> str:
    """Return a report in a format, with the figures of the event logs in its results folder.

    ``width`` is that of the terminal, if it is printed on one.
    """
    found = figures(report, folder) if format_ in DRAWN else NO_FIGURES
    return render(report, format_, found, width)


def print_python(targets: Iterable[Target], quiet: bool) -> None:
    """Print on stderr which Python runs the training if it is neither detaudit's own nor named by the user.

    Print as well if that is a pytest without the plugin, which passes every test that has its mark.
    """
    targets = () if quiet else tuple(targets)
    for python in dict.fromkeys(filter(None, (pytest_without_plugin(target.arguments) for target in targets))):
        click.echo(
            f"the pytest of {line(advice.shown(Path(python)))} has no detaudit: it does not audit tests with "
            "@pytest.mark.deterministic. Install detaudit there, and let pytest refuse unknown marks: --strict-markers",
            err=True,
        )
    for python in dict.fromkeys(target.python for target in targets if target.found):
        click.echo(f"training with {line(advice.shown(Path(python)))}; --python selects a different one", err=True)


def print_report(report: Report, format_: str, folder: Path | None = None) -> None:
    """Print a report; in the format ``github``, also append it as Markdown to the step summary.

    A summary that cannot be written is an error on stderr that does not change the exit status.
    """
    click.echo(rendered(report, format_, folder, width()), nl=False)
    summary = os.environ.get(_SUMMARY)
    if format_ != "github" or not summary:
        return
    try:
        store.append(Path(summary), render(report, "markdown").encode(errors="backslashreplace"))
    except StorageError as error:
        print_error(error)
