"""The records of an event log, decoded, and sets of weights."""

import contextlib
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from detaudit.model import as_number
from detaudit.model.record import WeightKind, WeightSet, WeightValue

# The lines of an event log; wire.py describes them.


_HEX = r"-?0x[01](\.[0-9a-f]{1,13})?p[+-](10[01][0-9]|102[0-3]|[0-9]{1,3})|nan|-?inf"
Float = Annotated[str, Meta(pattern=rf"^({_HEX})\Z")]
"""What float.hex() returns."""
SumOrNone = Annotated[str, Meta(pattern=rf"^({_HEX}|)\Z")]
"""A sum of weights; empty if there were no weights."""

UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
"""What decoding raises for a line that the recorder did not write like this."""


class Line(msgspec.Struct, frozen=True, tag_field="k"):
    """Any line; ``k`` is its kind."""


class Torn(Line, frozen=True):
    """Not in the file: from here on, it cannot be read."""


class Hello(Line, frozen=True, tag="hello"):
    """The recorder was loaded."""

    schema: int
    pid: int
    ppid: int
    argv: tuple[str, ...]
    python: str
    rank: int | None
    identity: tuple[int, ...]
    world: int | None = None
    program: tuple[int, ...] = ()
    started: int = 0
    attempt: int = 0


class Identity(Line, frozen=True, tag="identity"):
    """Which child of multiprocessing this is, if it learned that after its start."""

    identity: tuple[int, ...]


class Framework(Line, frozen=True, tag="framework"):
    """A framework was imported."""

    name: str
    version: str


class FlagLine(Line, frozen=True, tag="flag"):
    """A flag was applied, failed, or is unavailable."""

    id: str
    state: Literal["applied", "failed", "unavailable"]
    detail: str


class SourceLine(Line, frozen=True, tag="source"):
    """The script called something that introduces or fixes randomness."""

    kind: Literal[
        "seed",
        "clock",
        "process-id",
        "unseeded",
        "entropy",
        "listing-order",
        "completion-order",
        "completion-order-option",
        "shared-generator",
        "unordered-operation",
        "setting",
        "hyperparameter",
    ]
    what: str
    file: str
    line: int
    value: str
    takes: tuple[str, ...] = ()


class Environ(Line, frozen=True, tag="environ"):
    """The script set or deleted an environment variable."""

    name: str
    value: str | None
    file: str
    line: int
    after: tuple[str, ...]


class SettingsLine(Line, frozen=True, tag="settings"):
    """The settings at the end, and the user's modules: source ``files``, and ``extensions`` that were compiled."""

    values: dict[str, bool | int | str | None]
    environ: dict[str, dict[str, str]]
    files: tuple[str, ...]
    versions: dict[str, str] = {}
    packages: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()


class Generators(Line, frozen=True, tag="generators"):
    """The states of the random generators at the start of a training."""

    states: dict[str, str]


class Held(Line, frozen=True, tag="held"):
    """What a training held when a step began: of what each value is, its name, a short text, and its digest."""

    fw: str
    step: Annotated[int, Meta(ge=1)]
    values: tuple[tuple[str, str, str, str], ...]
    lane: int = 0


class TrainingLine(Line, frozen=True, tag="training"):
    """What the number of a training in rows stands for."""

    n: Annotated[int, Meta(ge=1, lt=2**32)]
    fw: str
    lane: int = 0


class NameLine(Line, frozen=True, tag="name", gc=False):
    """What the number of a name in rows stands for."""

    n: Annotated[int, Meta(ge=1, lt=2**32)]
    text: str


class ProbeLine(Line, frozen=True, tag="probe"):
    """A value that the script monitors, or its gradient."""

    name: str
    n: int
    step: int | None
    kind: Literal["value", "gradient"]
    digest: str
    value: str | None


class WeightsLine(Line, frozen=True, tag="weights"):
    """The weights that were updated at a step, one by one."""

    fw: str
    step: Annotated[int, Meta(ge=0)]
    set: int
    count: Annotated[int, Meta(ge=0)]
    tensors: tuple[tuple[str, tuple[int, ...], str, Float], ...]
    names: tuple[str | None, ...] = ()
    lane: int = 0


class Final(Line, frozen=True, tag="final"):
    """The final weights."""

    fw: str
    steps: int
    digest: str
    sum: SumOrNone
    loss: Float | None
    params: int
    sparse: bool
    devices: tuple[str, ...]
    weights: tuple[tuple[str, tuple[int, ...], str, Float], ...] = ()
    outputs: str | None = None
    loss_dtype: str | None = None
    lane: int = 0


class State(Line, frozen=True, tag="state"):
    """The state of models that were freed, or that are alive at the end."""

    fw: str
    live: bool
    tensors: tuple[tuple[str, str, bool, str, tuple[int, ...], str], ...]
    early: bool = False
    outputs: str | None = None
    lane: int = 0


class Undigested(Line, frozen=True, tag="undigested"):
    """What a fit learned has no digest."""

    what: str
    why: str


class UnseenLine(Line, frozen=True, tag="unseen"):
    """What a call trained, or may have trained, was not recorded."""

    fw: str
    call: str


class Trouble(Line, frozen=True, tag="trouble"):
    """The recorder failed."""

    where: str
    error: str


class Wrote(Line, frozen=True, tag="wrote"):
    """The process wrote to a file or made a folder, or (``spent``) to so many that further ones have no line.

    If those are ``seen``, they existed before, and the auditor searches their folders.
    """

    path: str
    append: bool = False
    size: int = -1
    changed: int = 0
    folder: bool = False
    at: int = 0
    spent: bool = False
    seen: bool = False


class Left(Line, frozen=True, tag="left"):
    """A temporary file is still there at the end of the process."""

    path: str
    new: bool


class Read(Line, frozen=True, tag="read"):
    """A line of the script read a file that an earlier run wrote; ``changed``: another process of this run wrote it."""

    path: str
    file: str
    line: int
    at: int
    changed: bool = False


class Data(Line, frozen=True, tag="data"):
    """Files that the process read and had not written before; ``spent``: and more that it did not note."""

    paths: tuple[str, ...]
    spent: bool = False


class Bye(Line, frozen=True, tag="bye"):
    """The process, or a task that it did for a pool, ended in an orderly way, after so many threads and rows."""

    how: str
    started: int = 0
    rows: int = 0


DECODER = msgspec.json.Decoder(
    Hello
    | Identity
    | Framework
    | FlagLine
    | SourceLine
    | Environ
    | SettingsLine
    | Generators
    | Held
    | TrainingLine
    | NameLine
    | ProbeLine
    | WeightsLine
    | Final
    | State
    | Undigested
    | UnseenLine
    | Trouble
    | Wrote
    | Left
    | Read
    | Data
    | Bye
)


SIZE = 2**19
"""The bytes that are read at a time, but for the rest of the last line."""


def lines_of(path: Path) -> Iterator[Line]:
    """Yield the lines of an event log up to one that is torn or cannot be decoded, and Torn for it."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        while raw := file.read(SIZE) + file.readline():
            lines = decoded(raw)
            yield from lines
            if isinstance(lines[-1], Torn):
                return
        return
    yield Torn()


def decoded(raw: bytes) -> list[Line]:
    """Return the lines up to one that is torn or cannot be decoded, and Torn for it."""
    try:
        lines: list[Line] = DECODER.decode_lines(raw)
    except UNREADABLE:
        lines = []
    # Between two lines, decode_lines passes over what is no line.
    return lines if raw.endswith(b"\n") and len(lines) == raw.count(b"\n") else list(_one_by_one(raw))


def _one_by_one(raw: bytes) -> Iterator[Line]:
    try:
        for line in io.BytesIO(raw):
            yield DECODER.decode(line)
            if not line.endswith(b"\n"):
                yield Torn()
    except UNREADABLE:
        yield Torn()


# Put together which weights a training updated, one by one.


Tensor: TypeAlias = tuple[str, tuple[int, ...], str, str]
"""Dtype, shape, digest and sum, as in an event log."""

_Kind: TypeAlias = tuple[str, tuple[int, ...]]


class SetsSoFar:
    """The sets of weights of one training, which grow with its event log; one whose tensors change is a new one."""

    def __init__(self) -> None:
        self._sets: dict[tuple[int, int, tuple[_Kind, ...]], list[WeightsLine]] = {}

    def take(self, line: WeightsLine) -> None:
        """Add a line."""
        self._sets.setdefault((line.set, line.count, tuple(tensor[:2] for tensor in line.tensors)), []).append(line)

    def sets(self, final: Final | None) -> tuple[WeightSet, ...]:
        """Return the sets, with their values at the end if the final weights are theirs, one set after another."""
        ends, weight_sets = self._ends(final), []
        for (_, count, kinds), lines in self._sets.items():
            names = dict(enumerate(lines[0].names))
            weight_sets.append(
                WeightSet(
                    kinds=tuple(
                        WeightKind(dtype=plain(dtype), shape=shape, name=names.get(index))
                        for index, (dtype, shape) in enumerate(kinds)
                    ),
                    count=count,
                    steps={line.step: _values(line.tensors) for line in lines},
                    final=_values(ends[: len(kinds)]),
                )
            )
            ends = ends[count:]
        return tuple(weight_sets)

    def _ends(self, final: Final | None) -> Sequence[Tensor]:
        """Return the final weights if they are those of the sets, in their order, else nothing."""
        rest = final.weights if final else ()
        for _, count, kinds in self._sets:
            if tuple(tensor[:2] for tensor in rest[: len(kinds)]) != kinds:
                return ()
            rest = rest[count:]
        return final.weights if final and not rest else ()


def plain(dtype: str) -> str:
    """Return a type as all frameworks write it: ``float32`` for ``torch.float32``."""
    return dtype.replace("torch.", "")


def _values(tensors: Iterable[Tensor]) -> tuple[WeightValue, ...]:
    return tuple((digest, as_number(float.fromhex(total))) for _, _, digest, total in tensors)
