"""Turns a report into text. Only this package writes sentences; it decides nothing and writes no files."""

import importlib
from typing import Protocol, cast

from detaudit.model import Report
from detaudit.model.figures import NO_FIGURES, Figures


class Reporter(Protocol):
    """One output format; each module of this package is one."""

    def render(self, report: Report) -> str:
        """Return the whole report."""


class Drawer(Protocol):
    """An output format with figures."""

    def render(self, report: Report, figures: Figures) -> str:
        """Return the whole report."""


class Fitter(Protocol):
    """An output format whose lines fit into a terminal."""

    def render(self, report: Report, width: int | None) -> str:
        """Return the whole report, in lines of at most ``width`` columns if that is not None."""


FORMATS = {
    "table": "detaudit.report.terminal",
    "json": "detaudit.report.json",
    "markdown": "detaudit.report.markdown",
    "junit": "detaudit.report.junit",
    "github": "detaudit.report.github",
    "gitlab": "detaudit.report.gitlab",
    "sarif": "detaudit.report.sarif",
    "html": "detaudit.report.html",
}
"""The values of ``--format``."""

DRAWN = frozenset({"html"})
"""Those with figures, which are read from event logs."""

FITTED = frozenset({"table"})
"""Those for a terminal."""


def render(report: Report, format_: str, figures: Figures = NO_FIGURES, width: int | None = None) -> str:
    """Return ``report`` in one of FORMATS; only one of DRAWN takes ``figures``, only one of FITTED a ``width``."""
    module = importlib.import_module(FORMATS[format_])
    if format_ in DRAWN:
        return cast(Drawer, module).render(report, figures)
    if format_ in FITTED:
        return cast(Fitter, module).render(report, width)
    return cast(Reporter, module).render(report)
