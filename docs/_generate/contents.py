"""What pages take from the project's data, by the names of their marks."""

from collections.abc import Callable, Mapping

from docs._generate import catalogue

MADE: Mapping[str, Callable[[], str]] = {
    "exit-statuses": catalogue.exit_statuses,
    "flags": catalogue.flags,
    "operations": catalogue.operations,
    "recipes": catalogue.recipes,
    "retired-settings": catalogue.retired,
    "variations": catalogue.varied,
}
"""Each function returns Markdown for a mark ``<!-- generated: NAME -->``."""
