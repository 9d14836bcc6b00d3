"""What an engine is: it carries jobs to other machines, knows nothing of trainings, and never repeats a job."""

from dataclasses import dataclass
from typing import Protocol

import msgspec

from detaudit.config.flags import Flag
from detaudit.config.options import Until


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """All that a machine needs to do one run of a plan, at most once.

    ``id`` is that of this attempt. ``code`` is a compressed tar of the user's repository, ``digest`` its SHA-256, and
    ``cwd`` where in it the run starts. ``python`` runs the training, ``""`` if the machine is to find one. ``place`` is
    the machine that is to do it as long as it can, ``""`` for any. Limits explains ``until``, ``last_step`` and
    ``trained_by``; ``watch`` is what else to record (wire.ENV_WATCH). The machine says whether it supports the flags of
    the recipe, and also those that are ``asked``.
    """

    id: str
    run: int
    plan: bytes
    code: bytes
    digest: str
    cwd: str = ""
    python: str = ""
    place: str = ""
    until: Until | None = None
    last_step: int | None = None
    trained_by: int = 1
    watch: str = ""
    asked: tuple[Flag, ...] = ()


class Lost(msgspec.Struct, frozen=True, tag=True):
    """Nothing will come of a job any more, for this reason: a machine or a connection was lost. No outcome of a run."""

    reason: str


class Refused(msgspec.Struct, frozen=True, tag=True):
    """A machine cannot do any job of this plan, or detaudit is not there: to try again is no use."""

    message: str
    hint: str = ""


@dataclass(frozen=True)
class Returned:
    """What came of a job: the archive of its run, or none. ``where`` is what the user calls the machine."""

    job: str
    result: bytes | Lost | Refused
    where: str = ""


class Engine(Protocol):
    """Carries jobs to machines. No method raises for a single job, and none waits for one."""

    at_once: int
    """How many jobs it does at once, at most; the others wait."""

    places: frozenset[str]
    """The machines that it can choose among for a job, empty if something else chooses."""

    def submit(self, job: Job, avoid: frozenset[str] = frozenset()) -> None:
        """Begin a job as soon as a machine is free, one that is not to be avoided if there is any."""

    def poll(self) -> list[Returned]:
        """Return what came of jobs since the last call, at once."""

    def cancel(self, job: str) -> None:
        """End a job, so that no process of it is left; nothing is returned of it."""

    def failure(self) -> str:
        """Return why nothing will come of any job any more, ``""`` if the engine works."""

    def close(self) -> None:
        """End all jobs and all that was started for them, in bounded time, whatever is broken."""
