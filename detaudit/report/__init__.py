"""Turns a report into text. Only this package writes sentences; it decides nothing and writes no files."""

import importlib
from typing import Protocol, cast

from detaudit.model import Report


class Reporter(Protocol):
    """One output format; each module of this package is one."""

    def render(self, report: Report) -> str:
        """Return the whole report."""


FORMATS = {
    "table": "detaudit.report.terminal",
    "json": "detaudit.report.json",
    "markdown": "detaudit.report.markdown",
    "junit": "detaudit.report.junit",
    "github": "detaudit.report.github",
    "gitlab": "detaudit.report.gitlab",
    "sarif": "detaudit.report.sarif",
}
"""The values of ``--format``."""


def render(report: Report, format_: str) -> str:
    """Return ``report`` in one of FORMATS."""
    return cast(Reporter, importlib.import_module(FORMATS[format_])).render(report)
