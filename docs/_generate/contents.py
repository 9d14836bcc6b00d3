"""What pages take from the project's data, by the names of their marks."""

from collections.abc import Callable, Mapping

from docs._generate import catalogue, code, messages, schema

MADE: Mapping[str, Callable[[], str]] = {
    "commands": code.commands,
    "exit-statuses": catalogue.exit_statuses,
    "flags": catalogue.flags,
    "functions": code.functions,
    "messages": messages.page,
    "operations": catalogue.operations,
    "pytest-plugin": code.pytest_plugin,
    "recipes": catalogue.recipes,
    "report-schema": schema.page,
    "retired-settings": catalogue.retired,
    "variations": catalogue.varied,
}
"""Each function returns Markdown for a mark ``<!-- generated: NAME -->``."""
