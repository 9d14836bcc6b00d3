"""Why a run cannot be compared, and why a group has no verdict."""

from typing import Literal, TypeAlias

from detaudit.model.fact import Fact
from detaudit.model.files import LeftState
from detaudit.model.outputs import OutputDifference

# Why a run cannot be judged.


class Interrupted(Fact, frozen=True, kw_only=True):
    """The user interrupted it."""


class EndedAtDifference(Fact, frozen=True, kw_only=True):
    """It was ended because it differed already."""


class EndedAfterStep(Fact, frozen=True, kw_only=True):
    """It was ended because no later step was wanted."""

    step: int


class TimedOut(Fact, frozen=True, kw_only=True):
    """It was killed after so many seconds; ``hung`` says that its training had ended before."""

    seconds: float
    step: int
    hung: bool


class Failed(Fact, frozen=True, kw_only=True):
    """The script ended with an exit status other than 0."""

    exit_code: int


class ModuleMissing(Fact, frozen=True, kw_only=True):
    """It imports a ``module`` that its Python does not have."""

    module: str


class InputExpected(Fact, frozen=True, kw_only=True):
    """It asked for input, of which a run has none."""


class Killed(Fact, frozen=True, kw_only=True):
    """A signal ended the script; ``signal`` is its name, or its number.

    ``out_of_memory``: the kernel killed a process for lack of memory while it went on.
    """

    signal: str
    out_of_memory: bool = False


class RunLost(Fact, frozen=True, kw_only=True):
    """The machine that did it was lost, in each of so many attempts; ``reason`` is that of the last."""

    attempts: int
    reason: str


class RecorderNotLoaded(Fact, frozen=True, kw_only=True):
    """The Python that ran ``program`` did not load the recorder."""

    program: str


class RecorderMismatch(Fact, frozen=True, kw_only=True):
    """The recorder of another version of detaudit was loaded; ``schema`` is that of its event log."""

    program: str
    schema: int


class ProbesIncomplete(Fact, frozen=True, kw_only=True):
    """A process that recorded probes did not end in order."""


class NoTraining(Fact, frozen=True, kw_only=True):
    """Nothing that the recorder hooks was trained; ``imported`` are the frameworks with their versions.

    If an earlier run, ``left_by``, trained something, ``left`` are the first files that it left, and that this one
    ``read`` if it read any.
    """

    imported: tuple[str, ...]
    left: tuple[str, ...] = ()
    left_by: int = 0
    read: bool = False


class FitUndigested(Fact, frozen=True, kw_only=True):
    """What a ``fit`` learned has no digest; ``detail`` names the attribute and says why."""

    fit: str
    detail: str


class LogIncomplete(Fact, frozen=True, kw_only=True):
    """The event log of a process that trained has no end."""

    pid: int


class LossPatternUnmatched(Fact, frozen=True, kw_only=True):
    """--loss-pattern matched nothing; ``last_line`` is the last line of stdout."""

    pattern: str
    last_line: str


class LossPatternMisfit(Fact, frozen=True, kw_only=True):
    """--loss-pattern matched ``text`` for a loss or a step, which is no number."""

    pattern: str
    group: Literal["loss", "step"]
    text: str


class LossPatternFlood(Fact, frozen=True, kw_only=True):
    """--loss-pattern matched more often than ``limit`` times."""

    pattern: str
    limit: int


class StdoutTruncated(Fact, frozen=True, kw_only=True):
    """It printed more than is kept, so that losses are missing."""


class StdoutUnreadable(Fact, frozen=True, kw_only=True):
    """Its stdout cannot be read; ``detail`` is the system's message."""

    detail: str


class ArtifactsNotWritten(Fact, frozen=True, kw_only=True):
    """The files that --artifact names were there before and did not change; ``more`` others are not listed."""

    files: tuple[str, ...]
    more: int = 0


class ArtifactMissing(Fact, frozen=True, kw_only=True):
    """No file matches --artifact; ``folder`` says that a folder does."""

    pattern: str
    folder: bool


class ArtifactUnusable(Fact, frozen=True, kw_only=True):
    """A file cannot be compared; ``detail`` is what its reader says."""

    path: str
    detail: str


class ProcessUnseen(Fact, frozen=True, kw_only=True):
    """A program with a framework did not load the recorder; ``why`` says what kept it out, as far as that is known."""

    command: str
    framework: str
    why: Literal["isolated", "environment", "path", "unknown"]


class RanksUnseen(Fact, frozen=True, kw_only=True):
    """A launcher started ``world`` ranks, and these have no event log."""

    ranks: tuple[int, ...]
    world: int


class CallUnseen(Fact, frozen=True, kw_only=True):
    """The script called something of a framework that may train, and that the recorder cannot follow."""

    framework: str
    call: str


Unseen: TypeAlias = ProcessUnseen | RanksUnseen | CallUnseen
"""What may have trained and was not recorded."""

RunError: TypeAlias = (
    Interrupted
    | EndedAtDifference
    | EndedAfterStep
    | TimedOut
    | Failed
    | InputExpected
    | ModuleMissing
    | Killed
    | RunLost
    | RecorderNotLoaded
    | RecorderMismatch
    | ProbesIncomplete
    | NoTraining
    | FitUndigested
    | LogIncomplete
    | LossPatternUnmatched
    | LossPatternMisfit
    | LossPatternFlood
    | StdoutTruncated
    | StdoutUnreadable
    | ArtifactsNotWritten
    | ArtifactMissing
    | ArtifactUnusable
    | Unseen
)
"""Why a run is not compared, or was ended early."""


# Why a group of runs is inconclusive.


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
