"""Why a group of runs is inconclusive."""

from typing import TypeAlias

from detaudit.model.facts import Fact
from detaudit.model.files import LeftState
from detaudit.model.outputs import OutputDifference
from detaudit.model.problems import RunError, Unseen


class RunUnusable(Fact, frozen=True, kw_only=True):
    """A run is not compared."""

    run: int
    errors: tuple[RunError, ...]


class SingleRun(Fact, frozen=True, kw_only=True):
    """There is nothing to compare a single run with."""


class OnlyProbes(Fact, frozen=True, kw_only=True):
    """The probes match, and nothing else was recorded."""


class OnlyLosses(Fact, frozen=True, kw_only=True):
    """The losses match, and no weights were recorded."""


class TrainingsUnseen(Fact, frozen=True, kw_only=True):
    """What was recorded matches, but a run may have trained more."""

    run: int
    unseen: tuple[Unseen, ...]


class RunsMissing(Fact, frozen=True, kw_only=True):
    """Some of the planned runs did not take place."""

    finished: int
    planned: int


class RunsCrowded(Fact, frozen=True, kw_only=True):
    """The runs match, but so many at once had fewer ``cores`` together than ``threads`` of each need."""

    jobs: int
    threads: int
    cores: int


class CoresReduced(Fact, frozen=True, kw_only=True):
    """The runs match, but each of so many at once had 1 of the ``cores``, so that a framework made 1 thread."""

    jobs: int
    cores: int


class DeviceShared(Fact, frozen=True, kw_only=True):
    """The runs match, but so many at once did not each have a ``device`` to itself, ``""`` if it is not known which."""

    jobs: int
    device: str


class MachinesRunOnce(Fact, frozen=True, kw_only=True):
    """No two runs were on one machine or on machines alike, or results differ, and these machines did one run each."""

    machines: tuple[int, ...]


class OutputsOpen(Fact, frozen=True, kw_only=True):
    """The trainings match, and something that left the runs differs in a way that may be a result or not."""

    first: OutputDifference
    more: int = 0


class StateUnsettled(Fact, frozen=True, kw_only=True):
    """The runs match, but some read what earlier ones had left, and none was seen without it."""

    state: LeftState


Reason: TypeAlias = (
    RunUnusable
    | SingleRun
    | OnlyProbes
    | OnlyLosses
    | TrainingsUnseen
    | RunsMissing
    | RunsCrowded
    | CoresReduced
    | DeviceShared
    | MachinesRunOnce
    | OutputsOpen
    | StateUnsettled
)
"""Why a group is inconclusive."""
