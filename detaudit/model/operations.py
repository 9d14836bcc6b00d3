"""What a scan of a framework's operations found."""

from enum import Enum

import msgspec

from detaudit.errors import ExitCode
from detaudit.model.difference import TensorDifference
from detaudit.model.problems import AnyRunError


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
    the first one; both are empty if results were not kept. ``error`` is what the switch raises. Of the step of a
    script, ``calls`` is how often it made this call, in ``direction``, and ``file`` and ``line`` say where first.
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
    calls: int = 0
    file: str = ""
    line: int = 0


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


class LeftOut(str, Enum):
    """Why a call in the step of a script is not repeated.

    ``view``: it computes nothing. ``uninitialized``: it returns memory as it was. ``collective``: its result also
    depends on other processes. ``custom``: it does not come with torch. ``higher-order``: it takes functions or
    kernels. ``generator``: it draws from a generator of its own. ``argument``: one cannot be saved. ``too-large``: its
    integers are. ``failed``: saving it failed.
    """

    VIEW = "view"
    UNINITIALIZED = "uninitialized"
    COLLECTIVE = "collective"
    CUSTOM = "custom"
    HIGHER_ORDER = "higher-order"
    GENERATOR = "generator"
    ARGUMENT = "argument"
    TOO_LARGE = "too-large"
    FAILED = "failed"


class LeftOutCalls(msgspec.Struct, frozen=True, kw_only=True):
    """Calls in the step of a script that are not repeated, and their operations."""

    reason: LeftOut
    calls: int
    operations: tuple[str, ...]


class ScriptStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a script: ``calls`` of ``operations``, of which ``distinct`` are repeated, others are the same.

    ``command`` is that of the script. It was run through the step, unless it did fewer ``steps``, with ``frameworks``;
    ``errors`` say why nothing was recorded, and ``log_dir`` has its logs. The calls are those of one of ``processes``.
    The inputs of ``drawn`` calls were too large to save: their floating-point numbers are random. By then ``compiled``
    functions were compiled.
    """

    command: tuple[str, ...]
    step: int
    steps: int
    frameworks: tuple[str, ...]
    processes: int
    log_dir: str
    calls: int = 0
    operations: int = 0
    distinct: int = 0
    drawn: int = 0
    compiled: int = 0
    left_out: tuple[LeftOutCalls, ...] = ()
    errors: tuple[AnyRunError, ...] = ()


class OpScan(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="ops"):
    """A scan: ``cases`` are directions of samples, of ``operations`` with each of ``dtypes``.

    ``differing`` has those with different results, ``refused`` those that only the switch refuses. The results of
    ``thread_dependent`` operations match, and are different with one thread. ``script`` is null if operations are those
    of a database.
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
    script: ScriptStep | None = None

    @property
    def exit_code(self) -> ExitCode:
        """The exit status of the command that made it."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if self.differing:
            return ExitCode.NONDETERMINISTIC
        return ExitCode.DETERMINISTIC if self.cases else ExitCode.INCONCLUSIVE
