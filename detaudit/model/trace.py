"""What a trace adds to an audit: the culprit, and how closely it was watched."""

from typing import Literal, TypeAlias

import msgspec

from detaudit.model.audit import Audit, Difference, Source
from detaudit.model.enums import Stage
from detaudit.model.tensor import TensorDifference

ALL_STEPS = 10**9
"""The last step of a window that does not end: no training has so many."""

CauseClass: TypeAlias = Literal["seed", "data", "kernel", "memory", "threads", "hash", "order", "address"]
"""What kind of cause a difference has."""

How: TypeAlias = Literal[
    "output", "random", "fresh", "other-tensor", "outside", "written-between", "fork", "value", "source"
]
"""How a difference came in.

- ``output``           an operation whose inputs are equal to the bit, and whose output differs
- ``random``           numbers were drawn from a generator in another state
- ``fresh``            memory was read before it was written
- ``other-tensor``     the runs take different ones of tensors that both have
- ``outside``          it was in what the framework was given
- ``written-between``  somebody else wrote to the memory of a tensor
- ``fork``             the two programs went different ways
- ``value``            a variable of the user's code had another value
- ``source``           a line of the user's code brings it, and no operation was seen to differ before
"""


class TensorPair(msgspec.Struct, frozen=True, kw_only=True):
    """The tensor that differs, of this dtype and shape: how far the two are apart, and where they were kept."""

    dtype: str
    shape: tuple[int, ...]
    difference: TensorDifference
    kept: str | None = None


class FlagCure(msgspec.Struct, frozen=True, kw_only=True):
    """A flag that mends it, and what to write in the script instead, and where."""

    flag: str
    title: str
    in_script: str
    where: str


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """An edit that mends it: what stands in the file from line ``first`` on, and what shall stand there.

    ``needs`` are the imports that the new lines need.
    """

    file: str
    first: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    needs: tuple[str, ...] = ()


class Culprit(msgspec.Struct, frozen=True, kw_only=True):
    """Where the difference enters.

    ``file`` and ``line`` are of the user's code: of an operation of a backward pass, that of its forward. ``op`` is the
    operation that differed, or that took the difference up; ``at`` its own line, where that is another one. ``values``
    are what a variable was in either run, or the lines to which the programs went. ``words`` say what the line does,
    ``code`` is the line itself.
    """

    how: How
    cause: CauseClass
    rank: int
    step: int
    stage: Stage
    file: str | None = None
    line: int | None = None
    code: str = ""
    words: str = ""
    op: str | None = None
    node: str | None = None
    module: str | None = None
    backward: bool = False
    thread: str | None = None
    at: str | None = None
    inputs_equal: bool = False
    values: tuple[str, str] | None = None
    tensor: TensorPair | None = None
    cures: tuple[FlagCure, ...] = ()
    edit: Edit | None = None
    also: tuple[Source, ...] = ()


class Bounded(msgspec.Struct, frozen=True, kw_only=True):
    """The best answer where no operation could be named: it enters after one event of a step and before another."""

    step: int
    after: str
    before: str
    suspects: tuple[Source, ...] = ()


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that were watched at one level, in a window of steps: how many, and where two of them first differ."""

    level: str
    first: int
    last: int
    runs: int
    differs: Difference | None


class Trace(Audit, frozen=True, kw_only=True):
    """A whole trace, as it is kept in audit.json.

    ``observer_effect`` is whether runs agreed while they were watched that differ when they are not.
    """

    culprit: Culprit | None
    bounded: Bounded | None
    observer_effect: bool
    passes: tuple[Pass, ...]
    launches: int
