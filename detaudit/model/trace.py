"""Trace, Culprit, Replay: the parts of a trace."""

from typing import Annotated

import msgspec
from msgspec import Meta

from detaudit.compat import StrEnum
from detaudit.model.audit import Audit, Difference
from detaudit.model.bisect import Edit
from detaudit.model.difference import TensorDifference
from detaudit.model.fact import Number
from detaudit.model.sources import Excerpt, Source
from detaudit.model.stage import Cause, Stage

# What a replay shows: one operation of a trace, run many times on the inputs that were recorded.


MOST_RESULTS = 8
"""Counts of different results that a report lists, the most frequent first."""


class Condition(StrEnum):
    """Under which condition an operation is repeated, each in a process of its own.

    - ``as-recorded``    with the settings of the training, and as many threads
    - ``loaded``         the same, with a busy process for each CPU beside it
    - ``filled``         as recorded, and new memory is filled with one byte after the other
    - ``one-thread``     with one thread, and memory filled in the same way
    - ``deterministic``  with the framework's deterministic mode, loaded, and memory filled in the same way
    """

    AS_RECORDED = "as-recorded"
    LOADED = "loaded"
    FILLED = "filled"
    ONE_THREAD = "one-thread"
    DETERMINISTIC = "deterministic"


class ReplayVerdict(StrEnum):
    """What an operation does by itself, if its inputs are the same.

    - ``races``          its threads race: the results differ
    - ``varies``         the results differ with one thread too
    - ``memory``         it reads uninitialized memory: the result follows what memory is filled with
    - ``per-process``    the results of one process match, and those of another process are different
    - ``deterministic``  all results match
    - ``inconclusive``   it could not be repeated
    """

    RACES = "races"
    VARIES = "varies"
    MEMORY = "memory"
    PER_PROCESS = "per-process"
    DETERMINISTIC = "deterministic"
    INCONCLUSIVE = "inconclusive"


class ModeEffect(StrEnum):
    """What the framework's deterministic mode does: all results match, it raises an error, or they still differ."""

    FIXES = "fixes"
    RAISES = "raises"
    NO_EFFECT = "no-effect"


class Obstacle(StrEnum):
    """Why an operation was not replayed.

    - ``not-recorded``    no instrumented run recorded its inputs
    - ``too-large``       its inputs do not fit into memory
    - ``argument``        an argument has a type that cannot be saved
    - ``random``          it draws random numbers
    - ``library``         it was defined by the script, or by a library that cannot be imported alone
    - ``variable``        the value of a variable that it uses is unknown
    - ``failed``          the process that was to repeat it failed
    """

    NOT_RECORDED = "not-recorded"
    TOO_LARGE = "too-large"
    ARGUMENT = "argument"
    RANDOM = "random"
    LIBRARY = "library"
    VARIABLE = "variable"
    FAILED = "failed"


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one operation under one condition: ``distinct`` ones in so many ``repeats``.

    ``fill`` is the byte, in hexadecimal, that memory was filled with, ``""`` if it was left as it is. ``counts`` says
    how often each of the MOST_RESULTS most frequent ones came out. ``error`` is that of the first repeat, ``""`` if it
    raised none.
    """

    condition: Condition
    fill: str = ""
    threads: int = 0
    repeats: int = 0
    distinct: int = 0
    counts: tuple[int, ...] = ()
    error: str = ""

    @property
    def differing(self) -> int:
        """How many results differ from the most frequent one; all of them if no two match."""
        if self.distinct > 1 and self.counts[0] == 1:
            return self.repeats
        return self.repeats - self.counts[0] if self.counts else 0


class ReplayedPass(msgspec.Struct, frozen=True, kw_only=True):
    """What the forward or the backward pass of an operation does by itself, and how its ``mode`` changes that.

    ``mode`` is null if there is nothing to fix, and if it is unknown.
    """

    verdict: ReplayVerdict
    mode: ModeEffect | None = None
    series: tuple[Series, ...] = ()


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """An operation that was repeated, or the ``obstacle`` to that, with a ``detail`` such as an error.

    ``own`` is the operation itself, ``gradient`` the backward pass that autograd makes of it, null if it has none.
    ``saved_to`` is the folder of the script that shows it.
    """

    own: ReplayedPass | None = None
    gradient: ReplayedPass | None = None
    obstacle: Obstacle | None = None
    detail: str = ""
    saved_to: str | None = None


# What a trace adds to an audit: the culprit, and what was recorded to find it.


MOST_OPERANDS = 16
"""Inputs, and outputs, of an operation that a report lists."""

ALL_STEPS = 10**9
"""The last step of a window that does not end: no training has so many."""


def at_steps(first: int, last: int) -> str:
    """Say at which steps something was recorded."""
    if last >= ALL_STEPS:
        return f"from step {first:,} on" if first > 1 else "at all steps"
    return f"at step {first:,}" if first == last else f"at steps {first:,} to {last:,}"


class How(StrEnum):
    """How a difference entered.

    - ``output``            identical inputs, different output
    - ``rng-state``         numbers were drawn from a generator in a different state
    - ``uninitialized``     memory was read before it was written
    - ``reordered``         both runs have both tensors, and take them in a different order
    - ``input``             the data given to the framework already differs
    - ``argument``          a number given to the operation differs
    - ``concurrent-write``  another thread or process wrote to the memory of a tensor
    - ``control-flow``      the two runs took different code paths
    - ``variable``          a variable of the user's code has a different value
    - ``source``            a line of the user's code introduces it, and no operation differed before
    - ``leftover-file``     a line of the user's code reads a file that an earlier run wrote
    """

    OUTPUT = "output"
    RNG_STATE = "rng-state"
    UNINITIALIZED = "uninitialized"
    REORDERED = "reordered"
    INPUT = "input"
    ARGUMENT = "argument"
    CONCURRENT_WRITE = "concurrent-write"
    CONTROL_FLOW = "control-flow"
    VARIABLE = "variable"
    SOURCE = "source"
    LEFTOVER_FILE = "leftover-file"


class TensorPair(msgspec.Struct, frozen=True, kw_only=True):
    """The tensor that differs, of this dtype and shape: how its two versions differ, and where they were saved."""

    dtype: str
    shape: tuple[int, ...]
    difference: TensorDifference
    saved_to: str | None = None


class RemedyTrial(msgspec.Struct, frozen=True, kw_only=True):
    """What came of this many runs with a flag or an edit: where two first differ, or that one ``failed``.

    ``through`` is the last step of which they show anything, null if they went to their ends. ``repeats`` says that
    batches are equal that were not without it: it would do harm.
    """

    runs: int
    first_difference: Difference | None = None
    failed: bool = False
    through: int | None = None
    repeats: bool = False

    @property
    def matched(self) -> bool:
        """Whether all runs match."""
        return self.first_difference is None and not (self.failed or self.repeats)

    def helps(self, step: int, stage: Stage) -> bool:
        """Whether all runs match, or differ only after this place, so that there is another difference behind it."""
        first = self.first_difference
        later = first is not None and (first.step, first.stage.position) > (step, stage.position)
        return self.matched or (later and not self.repeats)


class FlagFix(msgspec.Struct, frozen=True, kw_only=True):
    """A flag that may fix it; ``trial`` is what came of it, null if it was not tried."""

    flag: str
    title: str
    trial: RemedyTrial | None = None


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """A number given to an operation: the place of the argument, from 1, or its name; and its value in either run."""

    name: str
    values: tuple[str, str]


class Operand(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor that an operation takes or returns: of this dtype and shape, with its digest in either run.

    A digest is empty if there is none, as of memory that is only written to.
    """

    dtype: str
    shape: tuple[int, ...]
    digests: tuple[str, str]

    @property
    def differs(self) -> bool:
        """Whether the two runs have different tensors."""
        return self.digests[0] != self.digests[1]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """The operation that differed, or that took the difference up, and where it ran.

    ``op_location`` is its own line, null if that is the culprit's. A ``collective`` also depends on the other ranks.
    ``argument`` is the number that differs, if it is one. ``inputs`` and ``outputs`` are its first
    MOST_OPERANDS tensors, if both runs have it. ``replay`` is what it does by itself, null if it was not replayed.
    """

    name: str
    graph_node: str | None = None
    module: str | None = None
    backward: bool = False
    collective: bool = False
    op_location: str | None = None
    inputs_equal: bool = False
    argument: Argument | None = None
    tensor: TensorPair | None = None
    replay: Replay | None = None
    inputs: tuple[Operand, ...] = ()
    outputs: tuple[Operand, ...] = ()


class Culprit(msgspec.Struct, frozen=True, kw_only=True):
    """Where the difference enters, and what fixes it.

    ``file`` and ``line`` are of the user's code: of an operation of a backward pass, that of its forward pass; ``code``
    is the line itself, ``excerpt`` has those around it. ``source`` is what the line does, if known. ``name`` is the
    variable that differs, or the file that was read, ``values`` what it was in either run, or the lines at which they
    went on. A line that is ``repeated`` makes a generator each time that it runs: a constant seed there is no fix.
    ``edit_trial`` is what came of ``suggested_edit``, null if it was not tried.
    """

    how: How
    cause: Cause
    rank: int
    step: int
    stage: Stage
    file: str | None = None
    line: int | None = None
    code: str = ""
    source: Source | None = None
    operation: Operation | None = None
    thread: str | None = None
    name: str = ""
    values: tuple[str, str] | None = None
    flags: tuple[FlagFix, ...] = ()
    suggested_edit: Edit | None = None
    edit_trial: RemedyTrial | None = None
    suspects: tuple[Source, ...] = ()
    excerpt: Excerpt | None = None
    repeated: bool = False


class Boundary(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a step: a stage, or the ``side`` (input or output) of a module.

    With neither, it is the start of the step, or whatever ran before a module.
    """

    stage: Stage | None = None
    module: str = ""
    side: str = ""


class Narrowed(msgspec.Struct, frozen=True, kw_only=True):
    """The best answer if no operation could be named: the difference enters after one event and before another."""

    step: int
    after: Boundary
    before: Boundary
    suspects: tuple[Source, ...] = ()


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """Instrumented runs of one level, in a window of steps: how many, and where two of them first differ.

    ``run_ids`` are their numbers among all instrumented runs, by which their folders are called.
    """

    level: str
    first_step: int
    last_step: int
    runs: int
    first_difference: Difference | None
    run_ids: tuple[int, ...] = ()


class StepSpread(msgspec.Struct, frozen=True, kw_only=True):
    """How far a difference has spread in a step, in two instrumented runs.

    Of the ``operations`` that both runs have, ``differing`` ones return something different; ``absorbing`` ones return
    the same although they take something different. ``losses`` are those of either run, null if one has none.
    """

    step: int
    operations: Annotated[int, Meta(ge=1)]
    differing: int
    absorbing: int
    losses: tuple[Number, Number] | None = None


class Trace(Audit, frozen=True, kw_only=True, tag="trace"):
    """A whole trace, as it is kept in audit.json.

    ``observer_effect`` says that instrumented runs match although runs without instrumentation differ. ``spread`` has
    the first recorded steps from the first on in which an operation differs, none if no operations were compared.
    """

    culprit: Culprit | None
    narrowed_to: Narrowed | None
    observer_effect: bool
    passes: tuple[Pass, ...]
    total_runs: int
    spread: tuple[StepSpread, ...] = ()
