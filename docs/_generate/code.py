"""Pages that Sphinx makes of the code: the commands and the functions for a script, a test and a trainer."""

_COMMANDS = """
.. click:: detaudit.cli:cli
   :prog: detaudit
   :nested: full
"""

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
    return _rst(_COMMANDS)


def functions() -> str:
    """Return what a script may call."""
    return _rst(_FUNCTIONS)


def pytest_plugin() -> str:
    """Return the arguments of the mark, and what the fixture has."""
    return _rst(_PYTEST)


def _rst(text: str) -> str:
    return f"```{{eval-rst}}\n{text.strip()}\n```"
