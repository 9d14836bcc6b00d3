"""Reports sent to where people already look: each module that an entry point names is a destination."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

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
