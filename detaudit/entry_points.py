"""What is added to detaudit by its name alone: commands, engines, destinations and replays, ours and of other packages.

To read entry points takes longer than to start detaudit, so only what needs one of these does, never a plain run.
"""

import importlib
from typing import Any, NamedTuple, cast

from detaudit.errors import UnknownNameError

COMMANDS = "detaudit.commands"
"""Each is a Command."""

ENGINES = "detaudit.engines"
"""Each is a function that connects to one; see remote/engine.py."""

DESTINATIONS = "detaudit.destinations"
"""Each is a function that returns the destination at a place; see cli/report.py."""

LEAVES = "detaudit.leaves"
"""What runs trainings elsewhere (``engine_runs``; see cli/elsewhere.py) and repeats operations (``replays``; see
trace/tracer.py)."""


class Command(NamedTuple):
    """A command: its line in ``detaudit --help``, and the name of its click.Command, ``module:name``.

    That is imported only when it is used, so that ``--help`` need not wait for it.
    """

    help: str
    name: str

    def load(self) -> Any:
        """Import it."""
        module, _, name = self.name.partition(":")
        return getattr(importlib.import_module(module), name)


def names(group: str) -> list[str]:
    """Return the names of a group, in their order."""
    from importlib import metadata  # 25 ms, which a plain run does not take

    return sorted(metadata.entry_points(group=group).names)


def entry_point(group: str, name: str, kind: str) -> Any:
    """Return what a name of a group stands for, which has to be imported; ``kind`` is what it is, for people.

    Raises UnknownNameError if there is no such name.
    """
    from importlib import metadata

    for one in metadata.entry_points(group=group, name=name):
        return one.load()
    from detaudit.config.yamlfile import unknown  # --help has to answer without it

    known = names(group)
    if group == LEAVES and not known:
        hint = "It is found by the metadata of the package: install detaudit, rather than run it from its source."
        raise UnknownNameError(f"the {kind} {name!r} of detaudit is not installed", hint)
    raise unknown(kind, name, known)


def command(name: str) -> Command:
    """Return the command with a name. Raises UnknownNameError if there is none."""
    return cast(Command, entry_point(COMMANDS, name, "command"))
