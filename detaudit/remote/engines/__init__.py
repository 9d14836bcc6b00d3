"""The engines: each is a module with a function ``connect``, imported only when it is used."""

import importlib
from dataclasses import dataclass, field

from detaudit.config.yamlfile import unknown
from detaudit.remote.engine import Engine, Job


@dataclass
class Queue:
    """Jobs that wait for a machine, in their order."""

    waiting: list[tuple[Job, frozenset[str]]] = field(default_factory=list)

    def add(self, job: Job, avoid: frozenset[str]) -> None:
        """Add a job at the end."""
        self.waiting.append((job, avoid))

    def take(self, place: str, places: frozenset[str]) -> Job | None:
        """Return the first job for a machine that is free, None if there is none.

        One that is to avoid this machine waits for another of the ``places``, if there is any.
        """
        for number, (job, avoid) in enumerate(self.waiting):
            if place not in avoid or not places - avoid:
                del self.waiting[number]
                return job
        return None

    def remove(self, job: str) -> None:
        """Forget a job."""
        self.waiting = [(one, avoid) for one, avoid in self.waiting if one.id != job]


ENGINES = {
    "ssh": "ssh:HOST,HOST,... does runs on hosts that ssh reaches, one at a time on each.",
    "parsl": "parsl:CONFIG.py does runs by the executors of a configuration of Parsl.",
    "ray": "ray[:ADDRESS] does runs on the nodes of a cluster of Ray, that of this machine unless it is named.",
}
"""What each does with the argument after its name."""


def connect(text: str, python: str) -> Engine:
    """Return the engine of ``NAME[:ARGUMENT]``, for jobs that ``python`` does there, ``""`` for the usual one.

    Raises UnknownNameError for an unknown name, UsageError for an argument that the engine cannot use.
    """
    name, _, argument = text.partition(":")
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    engine: Engine = importlib.import_module(f"{__name__}.{name}").connect(argument, python)
    return engine
