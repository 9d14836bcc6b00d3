"""What pages take from the project's data, by the names of their marks."""

from collections.abc import Callable, Mapping

from docs._generate import catalogue, code, figures, messages, schema

MADE: Mapping[str, Callable[[], str]] = {
    "commands": code.commands,
    "exit-statuses": catalogue.exit_statuses,
    "figure-bounds": figures.bounds,
    "figure-contention": figures.contention,
    "figure-corpus": figures.corpus,
    "figure-missed": figures.missed,
    "figure-shares": figures.shares,
    "fixed-by": figures.fixed_by,
    "flags": catalogue.flags,
    "functions": code.functions,
    "messages": messages.page,
    "needed-runs": figures.needed,
    "operations": catalogue.operations,
    "pytest-plugin": code.pytest_plugin,
    "recipes": catalogue.recipes,
    "report-schema": schema.page,
    "retired-settings": catalogue.retired,
    "rules": catalogue.rules,
    "variations": catalogue.varied,
}
"""Each function returns Markdown for a mark ``<!-- generated: NAME -->``."""
