"""Decide whether a value is a result, a measurement or an identifier, by its name and by itself together."""

from detaudit.model.outputs import Role, RunFacts


def role(name: str, value: str, facts: RunFacts) -> Role:
    """Return what a value is: ``name`` is its column, key, label or path inside a file, ``""`` if it has none.

    ``value`` is its text: a number, a date, or any other text.
    """
    raise NotImplementedError


def array_role(name: str, least: float, most: float, facts: RunFacts) -> Role:
    """Return what a whole array or column of numbers is, by its name and its least and largest element."""
    raise NotImplementedError
