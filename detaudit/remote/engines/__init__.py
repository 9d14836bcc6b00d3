"""The engines: each is a function ``connect``, named by an entry point and imported only when it is used."""

from dataclasses import dataclass, field

from detaudit import entry_points
from detaudit.remote.engine import Engine, Job


@dataclass
class Queue:
    """Jobs that wait for a machine, in their order."""

    waiting: list[tuple[Job, frozenset[str]]] = field(default_factory=list)

    def add(self, job: Job, avoid: frozenset[str]) -> None:
        """Add a job at the end."""
        self.waiting.append((job, avoid))

    def take(self, machine: str, places: frozenset[str]) -> Job | None:
        """Return the first job for a machine that is free, None if there is none.

        One that is to avoid this machine waits for another of the ``places``, if there is any.
        """
        for number, (job, avoid) in enumerate(self.waiting):
            if machine not in avoid or not places - avoid:
                del self.waiting[number]
                return job
        return None

    def remove(self, job: str) -> None:
        """Forget a job."""
        self.waiting = [(one, avoid) for one, avoid in self.waiting if one.id != job]


def connect(text: str, python: str) -> Engine:
    """Return the engine of ``NAME[:ARGUMENT]``, for jobs that ``python`` does there, ``""`` for the usual one.

    Raises UnknownNameError for an unknown name, UsageError for an argument that the engine cannot use.
    """
    name, _, argument = text.partition(":")
    engine: Engine = entry_points.entry_point(entry_points.ENGINES, name, "engine")(argument, python)
    return engine
