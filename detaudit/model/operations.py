"""What a scan of a framework's operations found."""

from enum import Enum

import msgspec

from detaudit.errors import ExitCode
from detaudit.model.tensor import TensorDifference


class Direction(str, Enum):
    """What was repeated of an operation."""

    FORWARD = "forward"
    BACKWARD = "backward"


class OpCause(str, Enum):
    """Why the results of an operation differ.

    ``race``: with one thread they match. ``memory``: they follow what memory was filled with, so it reads uninitialized
    memory. ``unexplained``: they differ with one thread and the same filling too.
    """

    RACE = "race"
    MEMORY = "memory"
    UNEXPLAINED = "unexplained"


class SwitchEffect(str, Enum):
    """What the framework's deterministic switch does for an operation whose results differ, or otherwise for any."""

    FIXES = "fixes"
    RAISES = "raises"
    NO_EFFECT = "no-effect"
    UNTRIED = "untried"


class OpResult(msgspec.Struct, frozen=True, kw_only=True):
    """One direction of one sample of an operation that differs, or that the switch refuses.

    ``shapes`` are those of the inputs, ``distinct`` of ``repeats`` results were different, in all processes together;
    ``differing_processes`` says that results match within a process and differ between processes. ``cause`` is null if
    all match. ``part`` is the tensor of the result that ``difference`` is about, the farthest of the first results from
    the first one; both are empty if results were not kept. ``error`` is what the switch raises.
    """

    op: str
    dtype: str
    sample: int
    direction: Direction
    shapes: str
    repeats: int
    distinct: int
    differing_processes: bool
    cause: OpCause | None
    switch: SwitchEffect
    error: str = ""
    part: str = ""
    difference: TensorDifference | None = None


class OpCrash(msgspec.Struct, frozen=True, kw_only=True):
    """An operation that ended its process, or that did not end in time, if there is no ``exit_code``."""

    op: str
    dtype: str
    exit_code: int | None


class OpSkipped(msgspec.Struct, frozen=True, kw_only=True):
    """An operation whose samples could not be made or repeated."""

    op: str
    dtype: str
    error: str


class OpScan(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="ops"):
    """A scan: ``cases`` are directions of samples, of ``operations`` with each of ``dtypes``.

    ``differing`` has those with different results, ``refused`` those that only the switch refuses. The results of
    ``thread_dependent`` operations match, and are different with one thread.
    """

    schema_version: str
    framework: str
    version: str
    device: str
    dtypes: tuple[str, ...]
    threads: int
    started: str
    wall_s: float
    operations: int
    cases: int
    differing: tuple[OpResult, ...]
    refused: tuple[OpResult, ...]
    thread_dependent: tuple[str, ...]
    crashed: tuple[OpCrash, ...]
    skipped: tuple[OpSkipped, ...]
    interrupted: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """The exit status of the command that made it."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if self.differing:
            return ExitCode.NONDETERMINISTIC
        return ExitCode.DETERMINISTIC if self.cases else ExitCode.INCONCLUSIVE
