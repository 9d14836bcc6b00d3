"""Sends reports to where people already look: each module of this package that ``DESTINATIONS`` names is one."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from detaudit.errors import UsageError
from detaudit.recipe.names import unknown
from detaudit.report.tracked import TrackedAudit


class Destination(Protocol):
    """A place to which audits can be sent. What was sent there before is replaced, and nothing else."""

    def send(self, audits: Sequence[TrackedAudit], documents: Mapping[str, str]) -> list[str]:
        """Send audits, with documents by the names of their files. Return where people can look at them.

        Raises ExportError, StorageError or UsageError if that fails.
        """


class _Module(Protocol):
    def destination(self, place: str) -> Destination:
        """Return the destination at a place: what follows the colon. Raises UsageError if that cannot be one."""


DESTINATIONS = {"mlflow": "detaudit.exports.mlflow", "tensorboard": "detaudit.exports.tensorboard"}
"""The values of ``--to`` before the colon. Each is also the name of the extra with the packages that it needs."""


def destination(text: str) -> Destination:
    """Return the destination with this name, such as ``tensorboard:logs``.

    Raises UnknownNameError if there is none, UsageError for a place that it cannot use or a package that is missing.
    """
    name, _, place = text.partition(":")
    if name not in DESTINATIONS:
        raise unknown("destination", name, DESTINATIONS)
    try:
        return cast(_Module, importlib.import_module(DESTINATIONS[name])).destination(place)
    except ImportError as error:
        raise UsageError(
            f"--to {name} needs a package that is not installed: {error}",
            f"Run `pip install 'detaudit[{name}]'` where detaudit is installed.",
        ) from error
