"""The rows of an event log: its trainings, and each of their stages as a series that is read where it lies."""

import contextlib
import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from detaudit import private, wire
from detaudit.errors import StorageError
from detaudit.model import Number, Stage, as_number, series
from detaudit.model.series import Rows, Series, Steps, block_of, hashed, of_name
from detaudit.runs.log_records import NameLine, TrainingLine

ROW = np.dtype(
    {
        "names": ["step", "training", "name", "stage", "flags", "digest", "value"],
        "formats": ["<i8", "<u4", "<u4", "u1", "u1", "V16", "<f8"],
        "offsets": [0, 8, 12, 16, 17, 24, 40],
        "itemsize": wire.ROW.size,
    }
)
"""A row as wire.py lays it out."""

Raw: TypeAlias = NDArray[Any]
"""Rows as they are in the file."""

Losses: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Ascending steps, and the loss of each."""

CHUNK = 2**14
"""The rows that are read at a time."""

MOST_HELD = 1024
"""The number of rows up to which a training is held in memory."""

STAGES = {number: Stage(stage) for stage, number in wire.STAGE_NUMBERS.items()}
_STAGES = 16
"""More than there are numbers of stages."""


def rows_of(log: Path) -> Path:
    """Return where the rows of an event log are."""
    return log.with_suffix(wire.ROWS_SUFFIX)


class Key(NamedTuple):
    """The framework and the lane of a training."""

    framework: str
    lane: int


class Names:
    """Names of rows by their numbers. There may be one for each step, so each takes little more than its text."""

    def __init__(self) -> None:
        self._numbers, self._ends = array("I"), array("Q", [0])
        self._hashes, self._texts = bytearray(), bytearray()

    def add(self, number: int, text: str) -> None:
        """Add a name."""
        self._numbers.append(number)
        self._hashes += of_name(text)
        self._texts += text.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._texts))
        self.__dict__.pop("by_number", None)

    @cached_property
    def by_number(self) -> tuple[NDArray[np.uint32], Rows, NDArray[np.intp]]:
        """The ascending numbers, what each name adds to a digest, and its place."""
        numbers, hashes = np.array(self._numbers, np.uint32), np.frombuffer(bytes(self._hashes), np.int64)
        order = np.argsort(numbers, kind="stable")
        return numbers[order], hashes.reshape(-1, 2)[order], order

    def __getitem__(self, number: int) -> str:
        numbers, _, order = self.by_number
        index = int(order[np.searchsorted(numbers, number)])
        return self._texts[self._ends[index] : self._ends[index + 1]].decode("utf-8", "surrogatepass")


class Numbers:
    """What the numbers in rows stand for."""

    def __init__(self) -> None:
        self.trainings: dict[int, Key] = {}
        self.names = Names()

    def take(self, line: TrainingLine | NameLine) -> None:
        """Add a line."""
        if isinstance(line, NameLine):
            self.names.add(line.n, line.text)
        else:
            self.trainings[line.n] = Key(line.fw, line.lane)
            self.__dict__.pop("_sorted_trainings", None)

    @property
    def keys(self) -> list[Key]:
        """Each training once, in the order of their lines."""
        return list(dict.fromkeys(self.trainings.values()))

    @cached_property
    def _sorted_trainings(self) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        indices = {key: index for index, key in enumerate(self.keys)}
        numbers = sorted(self.trainings)
        return np.array(numbers, np.uint32), np.array([indices[self.trainings[one]] for one in numbers], np.int32)

    def places(self, raw: Raw) -> NDArray[np.int32]:
        """Return the place among ``keys`` of the training of each row, -1 for what is not one."""
        numbers, places = self._sorted_trainings
        return _looked_up(raw["training"], numbers, places, -1)

    def readable(self, raw: Raw, places: NDArray[np.int32] | None = None) -> int:
        """Return how many of these rows can be read; ``places`` are theirs if they are known."""
        stages, named = raw["stage"], raw["name"]
        places = self.places(raw) if places is None else places
        good = (stages > 0) & (stages <= len(STAGES)) & (raw["step"] >= 0) & (places >= 0)
        if named.any():
            numbers, _, _ = self.names.by_number
            good &= (named == 0) | (_looked_up(named, numbers, np.ones(len(numbers), np.int32), 0) == 1)
        return len(raw) if good.all() else int(good.argmin())

    def rows(self, raw: Raw) -> Rows:
        """Return the same rows as they are compared."""
        rows = np.empty((len(raw), 3), np.int64)
        rows[:, 0] = raw["step"]
        rows[:, 1:] = np.frombuffer(raw["digest"].tobytes(), np.int64).reshape(-1, 2)
        named = raw["name"]
        if named.any():
            numbers, hashes, _ = self.names.by_number
            at = np.flatnonzero(named)
            rows[at, 1:] ^= hashes[np.searchsorted(numbers, named[at])]
        return rows

    def texts(self, raw: Raw) -> Steps:
        """Return the digests of these rows as text, by step."""
        texts: defaultdict[int, tuple[str, ...]] = defaultdict(tuple)
        for step, name, digest in zip(raw["step"].tolist(), raw["name"].tolist(), raw["digest"].tolist(), strict=True):
            texts[step] += (text_of(digest, self.names[name] if name else None),)
        return dict(texts)


def text_of(digest: bytes, name: str | None) -> str:
    """Return a digest as text, with its name if it has one."""
    return digest.hex() if name is None else f"{digest.hex()} {name}"


def _looked_up(
    numbers: NDArray[np.uint32], known: NDArray[np.uint32], values: NDArray[np.int32], other: int
) -> NDArray[np.int32]:
    if not len(known):
        return np.full(len(numbers), other, np.int32)
    at = np.minimum(np.searchsorted(known, numbers), len(known) - 1) if len(known) > 1 else np.intp(0)
    return np.where(known[at] == numbers, values[at], np.int32(other)).astype(np.int32, copy=False)


def _losses(raw: Raw) -> Raw:
    with_loss: Raw = raw[np.flatnonzero(raw["flags"] & wire.HAS_VALUE)]
    return with_loss


def _ascend(last: int, steps: NDArray[np.int64]) -> bool:
    """Whether no step is before the one in front of it; the first comes after ``last``."""
    return not len(steps) or bool(last <= steps[0] and (steps[1:] >= steps[:-1]).all())


# The rows of one training, wherever they are.


class HeldRows:
    """Rows in memory, in any order; by ``block`` and stage, they ascend."""

    is_there = True

    def __init__(self, raw: Raw, numbers: Numbers) -> None:
        self.numbers = numbers
        self._raw = raw[np.argsort(raw["step"], kind="stable")]

    def block(self, number: int) -> Raw:
        """Return the rows of a block."""
        at = np.searchsorted(self._raw["step"], [number * series.BLOCK, (number + 1) * series.BLOCK])
        return self._raw[at[0] : at[1]]

    def of_stages(self) -> dict[Stage, "LoggedSeries"]:
        """Return the series of each stage."""
        stages = {}
        for number in dict.fromkeys(self._raw["stage"].tolist()):
            rows = self.numbers.rows(self._raw[self._raw["stage"] == number])
            digests = {block: hashed(part.tobytes()).digest() for block, part in _blocks(rows)}
            stages[STAGES[number]] = LoggedSeries(self, number, digests)
        return stages


def _blocks(rows: Rows) -> Iterator[tuple[int, Rows]]:
    """Yield ascending rows by block."""
    numbers = rows[:, 0] // series.BLOCK
    cuts = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(rows)]
    for first, end in pairwise(cuts):
        yield int(numbers[first]), rows[first:end]


class FileRows:
    """Rows in the file of an event log: ``places`` says between which of them each block is.

    If the file is not there when a block is asked for, ``fetch`` is to bring it.
    """

    def __init__(
        self,
        path: Path,
        key: Key,
        numbers: Numbers,
        places: Mapping[int, tuple[int, int]],
        fetch: Callable[[], None] = lambda: None,
    ) -> None:
        self.path, self.numbers, self.places, self._fetch = path, numbers, places, fetch
        self._own = np.array([number for number, one in numbers.trainings.items() if one == key], np.uint32)
        self._latest: tuple[int, Raw] = -1, np.empty(0, ROW)

    @property
    def is_there(self) -> bool:
        """Whether the file is there."""
        return self.path.exists()

    def block(self, number: int) -> Raw:
        """Return the rows of a block. Raises StorageError if the file is not there."""
        if self._latest[0] != number:
            steps = [number * series.BLOCK, (number + 1) * series.BLOCK]
            raw = np.concatenate([np.empty(0, ROW), *self._read(*self.places.get(number, (0, 0)))])
            self._latest = number, raw[(steps[0] <= raw["step"]) & (raw["step"] < steps[1])]
        return self._latest[1]

    def all(self) -> Iterator[Raw]:
        """Yield all rows, some at a time. Raises StorageError as ``block`` does."""
        ends = self.places.values()
        return self._read(min((first for first, _ in ends), default=0), max((end for _, end in ends), default=0))

    def _read(self, start: int, end: int) -> Iterator[Raw]:
        if not self.is_there:
            self._fetch()
        if not self.is_there:
            hint = "Put it back: the steps are in it. With `detaudit plan --records logs`, each run has its event logs."
            raise StorageError(f"{self.path} is gone, or was not fetched", hint)
        for raw in read(self.path, start, end):
            numbers = raw["training"]
            own = numbers == self._own[0] if len(self._own) == 1 else np.isin(numbers, self._own)
            yield raw if own.all() else raw[own]

    def refuse(self) -> NoReturn:
        """Raise StorageError because the file is not the same any more."""
        self._latest = -1, np.empty(0, ROW)
        hint = "Leave the results folder as it is while it is compared."
        raise StorageError(f"{self.path} has changed since it was read", hint)


def read(path: Path, start: int, end: int) -> Iterator[Raw]:
    """Yield the rows between two numbers, some at a time, as far as there are so many."""
    with contextlib.suppress(OSError), path.open("rb", buffering=0) as file:
        file.seek(start * ROW.itemsize)
        while start < end:
            data = file.read(min(CHUNK, end - start) * ROW.itemsize)
            raw = np.frombuffer(data[: len(data) // ROW.itemsize * ROW.itemsize], ROW)
            if not len(raw):
                return
            yield raw
            start += len(raw)


class LoggedSeries(Series):
    """The digests of one stage of a training, in its rows."""

    def __init__(self, source: HeldRows | FileRows, stage: int, blocks: Mapping[int, bytes]) -> None:
        self._source, self._stage, self._blocks = source, stage, blocks
        self._checked: Raw | None = None
        self._latest: tuple[int, Steps] = -1, {}

    @property
    def blocks(self) -> Mapping[int, bytes]:
        """See Series."""
        return self._blocks

    def rows(self, block: int) -> Rows:
        """See Series. Raises StorageError if the rows are not there, or not the same any more."""
        return self._source.numbers.rows(self._of(block))

    def texts(self, block: int) -> Steps:
        """See Series. Raises StorageError as ``rows`` does."""
        raw = self._of(block)
        if self._latest[0] != block:
            self._latest = block, self._source.numbers.texts(raw)
        return self._latest[1]

    def _of(self, block: int) -> Raw:
        if block not in self._blocks:
            return np.empty(0, ROW)
        of_all = self._source.block(block)
        raw: Raw = of_all[of_all["stage"] == self._stage]
        if isinstance(self._source, FileRows) and of_all is not self._checked:
            numbers = self._source.numbers
            if numbers.readable(raw) < len(raw) or hashed(numbers.rows(raw).tobytes()).digest() != self._blocks[block]:
                self._source.refuse()
            self._checked = of_all
        return raw


class LoggedLosses(Mapping[int, Number]):
    """The losses of a training in its rows through the step ``end``, by ascending step; ``last`` is known if it is."""

    def __init__(self, source: FileRows, last: tuple[int, Number] | None, end: float = math.inf) -> None:
        self.source, self._last, self._end = source, last, end

    def through(self, last: int) -> "LoggedLosses":
        """Return what was recorded through this step."""
        return LoggedLosses(self.source, None, min(last, self._end))

    def _of(self, raw: Raw) -> Raw:
        losses = _losses(raw)
        return losses if self._end == math.inf else losses[losses["step"] <= self._end]

    def __getitem__(self, step: int) -> Number:
        if self._last is not None and step == self._last[0]:
            return self._last[1]
        losses = self._of(self.source.block(block_of(step)))
        at = np.flatnonzero(losses["step"] == step)
        if not len(at):
            raise KeyError(step)
        return as_number(float(losses["value"][at[-1]]))

    def __iter__(self) -> Iterator[int]:
        for block in sorted(self.source.places):
            yield from np.unique(self._of(self.source.block(block))["step"]).tolist()

    def __reversed__(self) -> Iterator[int]:
        if self._last is not None:
            yield self._last[0]
        for block in sorted(self.source.places, reverse=True):
            steps = reversed(np.unique(self._of(self.source.block(block))["step"]).tolist())
            yield from (step for step in steps if self._last is None or step != self._last[0])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return any(True for _ in reversed(self))

    def arrays(self) -> "Losses":
        """Return all steps with a loss, and the losses. Raises StorageError if the rows are not there."""
        losses = np.concatenate([self._of(raw)[["step", "value"]] for raw in self.source.all()])
        alone = np.append(losses["step"][1:] != losses["step"][:-1], True)
        return losses["step"][alone], losses["value"][alone]


# Put trainings together from rows, chunk by chunk, so that those of any number take the same memory.


class StageSoFar:
    """The blocks of one stage, of which the last one still grows."""

    def __init__(self) -> None:
        self.blocks: dict[int, bytes] = {}
        self.last = -1
        self._hash = hashed()

    def add(self, block: int, rows: Rows) -> None:
        """Add rows of one block, none of which is before the last step."""
        if block not in self.blocks:
            self._hash = hashed()
        self._hash.update(rows.tobytes())
        self.blocks[block] = self._hash.digest()
        self.last = int(rows[-1, 0])


class RowsSoFar:
    """The rows of one training; a few of them are held. ``end`` is after the last of them in the file."""

    def __init__(self) -> None:
        self.stages: defaultdict[int, StageSoFar] = defaultdict(StageSoFar)
        self.places: dict[int, tuple[int, int]] = {}
        self.last_loss: tuple[int, Number] | None = None
        self.ordered = True
        self.count = self.end = 0
        self.in_memory: list[Raw] = []

    def hold(self, raw: Raw) -> None:
        """Add rows as they are in the file."""
        self.count += len(raw)
        self.in_memory = [*self.in_memory, raw.copy()] if self.count <= MOST_HELD else []
        at = np.flatnonzero(raw["flags"] & wire.HAS_VALUE)
        if len(at):
            steps = raw["step"][at]
            self.ordered &= _ascend(self.last_loss[0] if self.last_loss else -1, steps)
            self.last_loss = int(steps[-1]), as_number(float(raw["value"][at[-1]]))

    def add(self, stage: int, rows: Rows, at: NDArray[np.int64]) -> None:
        """Add rows of a stage, and where in the file each of them is."""
        so_far = self.stages[stage]
        self.ordered = self.ordered and _ascend(so_far.last, rows[:, 0])
        self.end = max(self.end, int(at[-1]) + 1)
        first = 0
        for block, part in _blocks(rows) if self.ordered else ():
            so_far.add(block, part)
            end = first + len(part)
            before = self.places.get(block, (int(at[first]), 0))
            self.places[block] = min(before[0], int(at[first])), max(before[1], int(at[end - 1]) + 1)
            first = end


class Scanned(NamedTuple):
    """The trainings of an event log, and how many rows can be read; ``torn``: more follows that cannot."""

    trainings: dict[Key, RowsSoFar]
    readable: int
    torn: bool


def size_of(path: Path) -> int:
    """Return the size of a file, 0 if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def scan(path: Path, size: int, numbers: Numbers) -> Scanned:
    """Return what is in the first ``size`` bytes of a file of rows."""
    keys = numbers.keys
    trainings = {key: RowsSoFar() for key in keys}
    start, total = 0, size // ROW.itemsize
    for raw in read(path, 0, total):
        places = numbers.places(raw)
        readable = numbers.readable(raw, places)
        _add(raw[:readable], places[:readable], numbers, start, [trainings[key] for key in keys])
        start += readable
        if readable < len(raw):
            break
    return Scanned(trainings, start, start * ROW.itemsize < size)


def _add(raw: Raw, places: NDArray[np.int32], numbers: Numbers, start: int, trainings: Sequence[RowsSoFar]) -> None:
    for index in np.flatnonzero(np.bincount(places)).tolist():
        trainings[index].hold(raw if len(trainings) == 1 else raw[places == index])
    codes = places * _STAGES + raw["stage"]
    if len(trainings) * _STAGES < 2**16:
        codes = codes.astype(np.uint16)  # which is sorted in linear time
    order = np.argsort(codes, kind="stable")
    codes, rows = codes[order], numbers.rows(raw)[order]
    cuts = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), len(codes)] if len(codes) else [0]
    for first, end in pairwise(cuts):
        index, stage = divmod(int(codes[first]), _STAGES)
        trainings[index].add(stage, rows[first:end], start + order[first:end])


class Recorded(NamedTuple):
    """What a training recorded in its rows."""

    steps: int
    digests: Mapping[Stage, Steps]
    losses: Mapping[int, Number]


def recorded(
    path: Path, key: Key, numbers: Numbers, so_far: RowsSoFar, fetch: Callable[[], None] = lambda: None
) -> Recorded:
    """Return what a training recorded. A long one is left in its file, where it is read in blocks."""
    if so_far.ordered and so_far.count > MOST_HELD:
        source = FileRows(path, key, numbers, so_far.places, fetch)
        stages = sorted(so_far.stages.items())
        return Recorded(
            max(stage.last for _, stage in stages),
            {STAGES[number]: LoggedSeries(source, number, stage.blocks) for number, stage in stages},
            LoggedLosses(source, so_far.last_loss) if so_far.last_loss else {},
        )
    if so_far.count > MOST_HELD:
        source = FileRows(path, key, numbers, {0: (0, so_far.end)})
        so_far.in_memory = list(source.all())
    raw = np.concatenate([np.empty(0, ROW), *so_far.in_memory])
    losses = {step: as_number(value) for step, value in _losses(raw)[["step", "value"]].tolist()}
    return Recorded(int(raw["step"].max()) if len(raw) else 0, HeldRows(raw, numbers).of_stages(), losses)


# Fold the rows of an event log: a small file beside them has the digests of their blocks, and is read in their place.
#
# The rows themselves are still needed to name the step at which runs differ: a block of them, and only of such runs.


SUFFIX = ".blocks"
"""The suffix of the file."""

_FORMAT = b"detaudit blocks 1\n"
"""What is digested before what is in the file, so that one in another format cannot be read."""


class _Stage(msgspec.Struct, frozen=True, array_like=True):
    last: int
    blocks: dict[int, bytes]


class _Training(msgspec.Struct, frozen=True):
    framework: str
    lane: int
    count: int
    end: int
    stages: dict[int, _Stage]
    places: dict[int, tuple[int, int]]
    last_loss: tuple[int, Number] | None
    in_memory: bytes


class _Folded(msgspec.Struct, frozen=True):
    count: int
    torn: bool
    trainings: tuple[_Training, ...]


_DECODER = msgspec.msgpack.Decoder(_Folded)


def blocks_of(log: Path) -> Path:
    """Return where the blocks of an event log are."""
    return log.with_suffix(SUFFIX)


def fold(log: Path, scanned: Scanned) -> bool:
    """Write the blocks of an event log that will not grow any more; return whether it has any.

    It has none if all of its trainings are short, or if the steps of a long one do not ascend. Raises OSError.
    """
    long = [so_far for so_far in scanned.trainings.values() if so_far.count > MOST_HELD]
    if not long or not all(so_far.ordered for so_far in long):
        return False
    trainings = tuple(
        _Training(
            *key,
            so_far.count,
            so_far.end,
            {number: _Stage(stage.last, stage.blocks) for number, stage in so_far.stages.items()},
            so_far.places,
            so_far.last_loss,
            b"".join(raw.tobytes() for raw in so_far.in_memory),
        )
        for key, so_far in scanned.trainings.items()
    )
    data = msgspec.msgpack.encode(_Folded(scanned.readable, scanned.torn, trainings))
    half = blocks_of(log).with_suffix(".part")
    half.unlink(missing_ok=True)  # one that was left behind would keep its mode
    with open(half, "wb", opener=private.opener) as file:
        file.write(hashed(_FORMAT + data).digest() + data)
    half.replace(blocks_of(log))
    return True


def folded(log: Path) -> Scanned | None:
    """Return what an event log has by its blocks, None if they cannot be read."""
    try:
        data = blocks_of(log).read_bytes()
        size = hashed().digest_size
        if hashed(_FORMAT + data[size:]).digest() != data[:size]:
            return None
        kept = _DECODER.decode(data[size:])
    except (OSError, msgspec.MsgspecError):
        return None
    trainings = {}
    for one in kept.trainings:
        so_far = trainings[Key(one.framework, one.lane)] = RowsSoFar()
        so_far.count, so_far.end, so_far.places, so_far.last_loss = one.count, one.end, one.places, one.last_loss
        so_far.in_memory = [np.frombuffer(one.in_memory, ROW)]
        for number, stage in one.stages.items():
            so_far.stages[number].last, so_far.stages[number].blocks = stage.last, stage.blocks
    return Scanned(trainings, kept.count, kept.torn)
