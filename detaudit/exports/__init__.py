"""Where reports are exported to, and what the user is asked for."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from detaudit.config.yamlfile import unknown
from detaudit.errors import UsageError
from detaudit.exports.tracked import TrackedAudit

# Sends reports to where people already look: each module of this package that ``DESTINATIONS`` names is one.


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


# What is asked of a server that keeps track of experiments.


@dataclass(frozen=True)
class Value:
    """A metric at a step. ``at`` is in milliseconds since 1970."""

    name: str
    value: float
    step: int
    at: int


@dataclass(frozen=True)
class KeptRun:
    """A run that the server has, with the latest value of each metric."""

    id: str
    tags: Mapping[str, str]
    params: Mapping[str, str]
    metrics: Mapping[str, float]


class Server(Protocol):
    """What is asked of the server. Each method takes a bounded time, and raises ExportError if it fails."""

    def experiment(self, name: str) -> str:
        """Return the ID of the experiment with this name, which is made if there is none."""

    def runs(self, experiment: str, tag: str, value: str) -> list[KeptRun]:
        """Return the runs of an experiment with this value of a tag, without those that were deleted."""

    def create(self, experiment: str, name: str, at: int, tags: Mapping[str, str]) -> str:
        """Make a run that began at this time, and return its ID."""

    def log(self, run: str, values: Sequence[Value], params: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Add to a run, in one request."""

    def steps(self, run: str, metric: str) -> set[int]:
        """Return the steps at which a run has a metric."""

    def remove_tag(self, run: str, tag: str) -> None:
        """Remove a tag from a run."""

    def end(self, run: str, status: str, at: int) -> None:
        """Set how and when a run ended."""

    def delete(self, run: str) -> None:
        """Delete a run."""

    def write(self, run: str, name: str, text: str) -> None:
        """Write a file into the artifacts of a run."""

    def address(self, experiment: str, run: str) -> str:
        """Return where people can look at a run."""
