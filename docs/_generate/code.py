"""Pages that Sphinx makes of the code: the commands, and the functions for a script and a test."""

import re

from detaudit import entry_points
from detaudit.cli import COMMANDS

_FUNCTIONS = """
.. automodule:: detaudit
   :members: record, record_weights, monitor, monitor_gradients, monitor_layer
   :exclude-members: TypeVar
"""

_PYTEST = """
.. autoclass:: detaudit.pytest_plugin.mark.Mark
   :exclude-members: __init__, __new__

.. autoclass:: detaudit.pytest_plugin.Determinism
   :members:
"""


def commands() -> str:
    """Return all commands with their options, as ``--help`` has them."""
    own = {name: f"detaudit.cli.{name}:command" for name in COMMANDS}
    others = {name: entry_points.command(name).name for name in entry_points.names(entry_points.COMMANDS)}
    return "\n\n".join(
        _rst(f".. click:: {place}\n   :prog: detaudit {name}\n   :nested: full")
        for name, place in {**own, **others}.items()
    )


def functions() -> str:
    """Return what a script may call."""
    return _rst(_FUNCTIONS)


def pytest_plugin() -> str:
    """Return the arguments of the mark, and what the fixture has."""
    return _rst(_PYTEST)


def _rst(text: str) -> str:
    return f"```{{eval-rst}}\n{text.strip()}\n```"


def whole_metavars(lines: list[str]) -> None:
    """Give each option back the bracket at the end of its value, which sphinx-click strips."""
    lines[:] = [re.sub(r"(<[^<>]*\[[^\]<>]*)>", r"\1]>", line) for line in lines]
