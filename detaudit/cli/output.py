"""Print finished reports, also to the step summary of GitHub Actions."""

import os
from pathlib import Path

import click

from detaudit.auditor import store
from detaudit.cli.errors import print_error
from detaudit.errors import StorageError
from detaudit.model import Report
from detaudit.report import render

_SUMMARY = "GITHUB_STEP_SUMMARY"


def print_report(report: Report, format_: str) -> None:
    """Print a report; in the format ``github``, also append it as Markdown to the step summary.

    A summary that cannot be written is an error on stderr that does not change the exit status.
    """
    click.echo(render(report, format_), nl=False)
    summary = os.environ.get(_SUMMARY)
    if format_ != "github" or not summary:
        return
    try:
        store.append(Path(summary), render(report, "markdown").encode(errors="backslashreplace"))
    except StorageError as error:
        print_error(error)
