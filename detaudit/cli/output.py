"""Printing a finished report, and what belongs beside it in a CI system."""

import os
from pathlib import Path

import click

from detaudit.auditor import store
from detaudit.errors import StorageError
from detaudit.model import Report
from detaudit.report import render

_SUMMARY = "GITHUB_STEP_SUMMARY"


def tell(report: Report, format_: str) -> None:
    """Print a report; in the format ``github`` it also goes, as Markdown, into the summary of the step."""
    click.echo(render(report, format_), nl=False)
    summary = os.environ.get(_SUMMARY)
    if format_ != "github" or not summary:
        return
    try:
        store.append(Path(summary), render(report, "markdown").encode(errors="backslashreplace"))
    except StorageError as error:
        lament(error)


def lament(error: StorageError) -> None:
    """Say on stderr that a report could not be kept; its verdict, and the exit status, stand all the same."""
    click.echo(f"{click.style('error:', fg='red')} {error.message}. {error.cure}", err=True)
