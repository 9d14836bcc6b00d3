"""Tells: turns a finished audit into text. Reporters compute nothing and write no files."""

import importlib
from typing import Protocol, cast

from detaudit.model import Audit


class Reporter(Protocol):
    """One output format; each module of this package is one."""

    def render(self, audit: Audit) -> str:
        """Return the whole report."""


FORMATS = {
    "table": "detaudit.report.terminal",
    "json": "detaudit.report.json",
    "markdown": "detaudit.report.markdown",
}
"""The words of ``--format``."""


def render(audit: Audit, format_: str) -> str:
    """Return ``audit`` in one of FORMATS."""
    return cast(Reporter, importlib.import_module(FORMATS[format_])).render(audit)
