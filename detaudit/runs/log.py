"""The logs of a run's processes, put together as trainings in an order that is the same in every run."""

import dataclasses
import hashlib
import io
import os
import shutil
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
from msgspec.structs import replace
from msgspec.structs import replace as changed

from detaudit import private, redact, wire
from detaudit.errors import StorageError
from detaudit.model import (
    FITTED,
    FinalState,
    ModelTensor,
    Number,
    Stage,
    Training,
    Weight,
    as_number,
    blocks,
    is_inference,
)
from detaudit.runs.log_pages import (
    Block,
    EventsInMemory,
    FoldedStage,
    FoldedTree,
    Log,
    LoggedBlocks,
    LoggedLosses,
    LoggedSteps,
    Origin,
    Piece,
    Places,
    Top,
    pieces,
    write,
)
from detaudit.runs.log_records import (
    UNREADABLE,
    Bye,
    Environ,
    Event,
    Final,
    FlagLine,
    Framework,
    Generators,
    Hello,
    Identity,
    Left,
    Line,
    ProbeLine,
    Read,
    SetsSoFar,
    SettingsLine,
    SourceLine,
    State,
    Torn,
    Trouble,
    Undigested,
    UnseenLine,
    WeightsLine,
    Wrote,
    plain,
)

# Put a training together from the lines of an event log.


MOST_HELD = 256
"""The number of events up to which a training is held in memory."""


MOST_KNOWN = 4096
"""The number of blocks that are recognized when they are read again."""


class TrainingSoFar:
    """A training that grows with each event. A long one is left in its event log, where it is read in blocks."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._held = EventsInMemory()
        self._log: Log | None = None
        self._count, self._start = 0, 0
        self._sets = SetsSoFar()
        self.final: Final | None = None
        self.freed: list[State] = []
        self.live: State | None = None

    def take(self, line: Final | State | WeightsLine) -> None:
        """Add a line."""
        if isinstance(line, WeightsLine):
            self._sets.take(line)
        elif isinstance(line, Final):
            self.final = line
        elif line.live:
            self.live = line
        else:
            self.freed.append(line)

    def add(self, events: Sequence[Event], start: int, end: int) -> None:
        """Add events, which lie between these bytes of the event log."""
        if self._log is not None:
            self._log.add(events, start, end)
            return
        self._start = self._start if self._count else start
        self._count += len(events)
        self._held.add(events)
        if self._count > MOST_HELD:
            self._log = Log(self._origin)
            self._log.take_held(self._held, self._start, end)
            self._held = EventsInMemory()

    def take_block(self, block: Block, start: int, end: int) -> bool:
        """Add a block, whose events lie between these bytes of the event log; return whether it can be added."""
        return self._log is not None and self._log.take(block, start, end)

    @property
    def block(self) -> Block | None:
        """The block of the events that were added last, if all of it was added with them."""
        return self._log.alone if self._log is not None else None

    def training(self, unplaced: bool = False) -> Training:
        """Return the training so far."""
        if self._log is not None and not self._log.ordered:
            self._held, self._log = self._origin.in_memory(), None
        log, events = self._log, self._held
        return Training(
            framework=self._origin.framework,
            unplaced=unplaced,
            steps=log.last_step
            if log
            else max((step for steps in events.digests.values() for step in steps), default=0),
            digests={stage: LoggedSteps(log, stage) for stage in log.stages} if log else events.digests,
            losses=LoggedLosses(log) if log else events.losses,
            final=_final_state(self.final, self._states(), self._outputs()) if self.final else None,
            weight_sets=self._sets.sets(self.final),
        )

    def _outputs(self) -> str | None:
        """Return the digest of the last outputs, which a process writes with the states if only its threads trained."""
        outputs = self.final.outputs if self.final else None
        return outputs or (self.live.outputs if self.live else None)

    def _states(self) -> tuple[ModelTensor, ...]:
        """Return the tensors of all models, sorted: models are freed in no fixed order."""
        states = [*self.freed, *([self.live] if self.live else [])]
        tensors = [_model_tensor(*tensor) for state in states for tensor in state.tensors]
        return tuple(sorted(tensors, key=lambda tensor: (tensor.name, tensor.digest)))


class TrainingsSoFar:
    """The trainings of one process, by framework and lane, which grow with its event log."""

    def __init__(self, path: Path, known: dict[bytes, Block]) -> None:
        self._path, self._known = path.absolute(), known
        self._growing: dict[tuple[str, int], TrainingSoFar] = {}

    @property
    def lanes(self) -> tuple[int, ...]:
        """The lane of each."""
        return tuple(lane for _, lane in self._growing)

    def _of(self, framework: str, lane: int) -> TrainingSoFar:
        key = framework, lane
        if key not in self._growing:
            self._growing[key] = TrainingSoFar(Origin(self._path, framework, lane))
        return self._growing[key]

    def take(self, line: Final | State | WeightsLine) -> None:
        """Add a line."""
        self._of(line.fw, line.lane).take(line)

    def add(self, events: Sequence[Event], piece: Piece) -> set[str]:
        """Add events of a piece of the event log, and return their frameworks."""
        frameworks, lanes = {event.fw for event in events}, {event.lane for event in events}
        if len(frameworks) == len(lanes) == 1:
            so_far = self._of(events[0].fw, events[0].lane)
            so_far.add(events, piece.start, piece.end)
            block = so_far.block if len(events) == len(piece.lines) else None
            if block is not None and len(self._known) < MOST_KNOWN:
                self._known[piece.digest] = block
            return frameworks
        events_by_lane: defaultdict[tuple[str, int], list[Event]] = defaultdict(list)
        for event in events:
            events_by_lane[event.fw, event.lane].append(event)
        for key, part in events_by_lane.items():
            self._of(*key).add(part, piece.start, piece.end)
        return frameworks

    def add_known(self, piece: Piece) -> str | None:
        """Add a piece that was read before, in this log or in one of another run, and return its framework.

        Return None if it has to be read.
        """
        block = self._known.get(piece.digest)
        if block is None or not self._of(block.framework, block.lane).take_block(block, piece.start, piece.end):
            return None
        return block.framework

    def trainings(self) -> tuple[Training, ...]:
        """Return the trainings. A process records the models of its threads together."""
        for (framework, lane), so_far in self._growing.items():
            thread_trainings = [one for (fw, n), one in self._growing.items() if fw == framework and n and one.final]
            if not lane and not so_far.final and thread_trainings:
                first = min(thread_trainings, key=lambda one: in_order(one.training()))
                first.freed += so_far.freed
                first.live = first.live or so_far.live
        return tuple(so_far.training(unplaced=lane > 0) for (_, lane), so_far in self._growing.items())


def in_order(training: Training) -> str:
    """Return a text by which trainings are put in an order that is the same in every run with the same results."""
    final = training.final or FinalState()
    initial = blocks.fingerprint(training.digests.get(Stage.INIT, {}))
    return repr((training.framework, initial, training.steps, final.digest, final.state_digest, training.last_loss))


def _model_tensor(kind: str, name: str, buffer: bool, dtype: str, shape: tuple[int, ...], digest: str) -> ModelTensor:
    # Which model a module belongs to is shown, but not compared: it may be part of several.
    identity = f"{kind}|{name.rpartition('.')[2]}|{dtype}|{shape}|{digest}"
    return ModelTensor(name=name, buffer=buffer, digest=hashlib.blake2b(identity.encode(), digest_size=8).hexdigest())


def _number(text: str) -> Number:
    return as_number(float.fromhex(text))


def _final_state(final: Final, state: tuple[ModelTensor, ...], outputs: str | None) -> FinalState:
    loss = _number(final.loss) if final.loss else None
    loss_dtype = plain(final.loss_dtype) if final.loss_dtype else None
    if not final.params:
        return FinalState(loss=loss, loss_dtype=loss_dtype, sampled=final.sparse, state=state, outputs=outputs)
    return FinalState(
        digest=final.digest,
        sum=_number(final.sum) if final.sum else None,
        loss=loss,
        loss_dtype=loss_dtype,
        devices=final.devices,
        sampled=final.sparse,
        weights=tuple(
            Weight(dtype=dtype, shape=shape, digest=digest, sum=_number(total))
            for dtype, shape, digest, total in final.weights
        ),
        state=state,
        outputs=outputs,
    )


# Read event logs: what each process of a run recorded, as far as it got.


@dataclass
class Process:
    """The event log of one process; of one that is ``torn``, only the start can be read."""

    hello: Hello
    identity: tuple[int, ...] = ()
    frameworks: list[Framework] = field(default_factory=list)
    flags: list[FlagLine] = field(default_factory=list)
    sources: list[SourceLine] = field(default_factory=list)
    environ: list[Environ] = field(default_factory=list)
    settings: SettingsLine | None = None
    generators: dict[str, str] = field(default_factory=dict)
    probes: list[ProbeLine] = field(default_factory=list)
    undigested: list[Undigested] = field(default_factory=list)
    unseen: list[UnseenLine] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    trainings: tuple[Training, ...] = ()
    lanes: tuple[int, ...] = ()
    wrote: list[Wrote] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    read: list[Read] = field(default_factory=list)
    ended: bool = False
    started: int = 0
    torn: bool = False
    replaced: bool = False
    """Whether its launcher started all ranks again later, so that what it trained counts no more."""

    @property
    def versions(self) -> dict[str, str]:
        """What was imported, and its version; all of it only if the process ended in order."""
        imported = {framework.name: framework.version for framework in self.frameworks}
        return {**(self.settings.versions if self.settings else {}), **imported}

    @property
    def trained(self) -> list[Training]:
        """The trainings of this process that did a step."""
        return [training for training in self.trainings if training.steps > 0]


def versions(processes: Iterable[Process]) -> dict[str, str]:
    """Return all that the processes of a run imported, and its version."""
    return {name: version for process in processes for name, version in process.versions.items()}


def logs(folder: Path) -> list[Path]:
    """Return the event logs in a folder."""
    return sorted(path for path in folder.glob("*" + wire.LOG_SUFFIX) if path.is_file())


def _unidentified(path: Path) -> Process:
    """Return a process of which only the name of its event log is known."""
    pid = path.name.partition(".")[0]
    hello = Hello(wire.SCHEMA, int(pid) if pid.isdecimal() else 0, 0, (), "", None, ())
    return Process(hello, torn=True)


def read_process(path: Path, known: dict[bytes, Block]) -> Process:
    """Return the process of an event log; ``known`` is as of read_run."""
    process: Process | None = None
    growing = TrainingsSoFar(path, known)
    for piece in pieces(path):
        framework = growing.add_known(piece) if process is not None else None
        if process is not None and framework is not None:
            process.ended = process.ended and is_inference(framework)
            continue
        for kind, lines in groupby(piece.lines, type):
            if process is not None and kind is Event:
                frameworks = growing.add(cast("list[Event]", list(lines)), piece)
                process.ended = process.ended and all(map(is_inference, frameworks))
                continue
            for line in lines:
                if isinstance(line, Hello):
                    process = Process(line, line.identity)
                    if line.schema != wire.SCHEMA:  # what follows may mean something else
                        process.torn = True
                        return process
                elif process is None:
                    return _unidentified(path)
                else:
                    _take(process, growing, line)
    if process is None:
        return _unidentified(path)
    process.trainings, process.lanes = growing.trainings(), growing.lanes
    return process


_LISTS: dict[type[Line], str] = {
    Framework: "frameworks",
    FlagLine: "flags",
    SourceLine: "sources",
    Environ: "environ",
    ProbeLine: "probes",
    Undigested: "undigested",
    UnseenLine: "unseen",
    Trouble: "troubles",
    Wrote: "wrote",
    Left: "left",
    Read: "read",
}


def _take(process: Process, growing: TrainingsSoFar, line: Line) -> None:
    match line:
        case Final() | State() | WeightsLine():
            growing.take(line)
            # Something was trained after the end of a task of a pool: the next task began.
            process.ended = process.ended and (isinstance(line, State) or is_inference(line.fw))
        case Identity():
            process.identity = line.identity
        case SettingsLine():
            process.settings = line
        case Generators():
            process.generators = process.generators or line.states
        case Bye():
            process.ended, process.started = True, line.started
        case Torn():
            process.torn = True
        case _ if type(line) in _LISTS:
            getattr(process, _LISTS[type(line)]).append(line)
        case _:
            pass


def read_run(folder: Path, known: dict[bytes, Block] | None = None) -> list[Process]:
    """Return the processes of a run, as of_run does.

    ``known`` has blocks of steps that were read before, by their bytes; those that are read now are added.
    """
    known = {} if known is None else known
    return of_run([read_process(path, known) for path in logs(folder / wire.LOGS)])


def of_run(processes: Sequence[Process]) -> list[Process]:
    """Return processes in an order that is the same in every run, with those of their trainings that count.

    They are sorted by launcher rank, then by multiprocessing's numbering, then in the order of their start. Calls of
    models are trainings only if nothing was trained in any process.
    """
    trained = any(not training.is_inference for process in processes for training in process.trained)
    for process in processes:
        # Calls before a training or in other processes are no results, nor calls before a backward pass that nothing
        # uses: without an end, although the process ended in order.
        kept = [
            (one, lane)
            for one, lane in zip(process.trainings, process.lanes, strict=True)
            if not one.is_inference or not (trained or (process.ended and one.final is None))
        ]
        process.trainings, process.lanes = tuple(one for one, _ in kept), tuple(lane for _, lane in kept)

    _leave_out_earlier_attempts(processes)

    def order(process: Process) -> tuple[int, tuple[int, ...], int, int]:
        hello = process.hello
        return (hello.rank if hello.rank is not None else 0, process.identity, hello.started, hello.pid)

    # Several processes without a number differ in their process IDs only.
    unnumbered = [one for one in processes if one.trained and one.hello.rank is None and not one.identity]
    for process in unnumbered if len(unnumbered) > 1 else ():
        process.trainings = tuple(replace(training, unplaced=True) for training in process.trainings)
    return sorted(processes, key=order)


def _leave_out_earlier_attempts(processes: Iterable[Process]) -> None:
    ranks = [process for process in processes if process.hello.rank is not None]
    last = max((process.hello.attempt for process in ranks), default=0)
    for process in ranks:
        process.replaced = process.hello.attempt < last
        process.trainings = () if process.replaced else tuple(replace(one, attempt=last) for one in process.trainings)


def trainings(processes: Iterable[Process]) -> list[tuple[Process, Training]]:
    """Return all trainings of a run with their processes. Fits come last, so that they take no rank.

    Chance decides which worker does a task, and which of several equal commands is first: these are put in the order of
    what they trained.
    """
    pairs: list[tuple[Process, Training]] = []
    alike: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for process in processes:
        for training, lane in zip_longest(process.trainings, process.lanes, fillvalue=0):
            if isinstance(training, Training) and training.steps > 0:
                if training.unplaced:
                    alike[() if lane else process.hello.argv].append(len(pairs))
                pairs.append((process, training))
    for indexes in alike.values():
        ordered = sorted((pairs[index] for index in indexes), key=lambda one: in_order(one[1]))
        for index, one in zip(indexes, ordered, strict=True):
            pairs[index] = one
    return sorted(pairs, key=lambda one: one[1].framework in FITTED)


def matching(processes: Iterable[Process], argument: str) -> list[Process]:
    """Return the processes whose command line contains ``argument``; all of them if it is empty."""
    written = redact.text(argument)  # as the recorder writes it
    return [process for process in processes if not argument or written in process.hello.argv]


def display_path(file: str, cwd: Path) -> str:
    """Return a file as people name it: relative if it is below the run's working directory."""
    return os.path.relpath(file, cwd) if file.startswith(f"{cwd}{os.sep}") else file


# Fold an event log: a small file beside it has the trees of its long trainings, and is read in its place.
#
# The file begins with a head: all that was recorded but the steps of long trainings, and the roots of their trees, by
# stage. The nodes of the trees follow. The steps themselves are still in the event log alone: runs whose roots are
# equal are compared without it, and of others only the blocks are read that a tree leads to.


SUFFIX = ".tree"
"""What follows the name of an event log."""

_MAGIC = b"detaudit tree 1\n"
_START = struct.Struct(">16s32sQ")
"""_MAGIC, the SHA-256 of the head, and its size in bytes."""

_MOST_HEAD = 2**28
"""Bytes of a head."""


class _Long(msgspec.Struct, frozen=True):
    """The trees of a long training by stage, and its last loss with its step."""

    stages: dict[Stage, Top]
    last_loss: tuple[int, Number] | None


class _Head(msgspec.Struct, frozen=True):
    """What is in an event log, and its long trainings by their place; ``log`` and ``nodes`` are sizes in bytes."""

    log: int
    nodes: int
    process: Process
    long: dict[int, _Long]


def tree_file(log: Path) -> Path:
    """Return where the trees of an event log are."""
    return log.with_name(log.name + SUFFIX)


def is_folded(path: Path) -> bool:
    """Return whether a file is an event log that has trees."""
    return path.name.endswith(wire.LOG_SUFFIX) and tree_file(path).is_file()


def fold(log: Path) -> bool:
    """Write the trees of an event log that will not grow any more; return whether it has any.

    A log has none if the steps of a long training do not ascend in it, a number in it has more than 64 bits, or its
    head would be too large. Raises StorageError if the trees cannot be written.
    """
    try:
        process, nodes = read_process(log, {}), bytearray()
        parts, long = [], {}
        for index, part in enumerate(process.trainings):
            if isinstance(part.losses, LoggedLosses):
                long[index] = _long(part.losses.log, nodes)
                parts.append(changed(part, digests={}, losses={}))
            elif sum(map(len, part.digests.values())) > MOST_HELD:
                return False
            else:
                parts.append(part)
        kept = dataclasses.replace(process, trainings=tuple(parts))
        head = msgspec.msgpack.encode(_Head(log.stat().st_size, len(nodes), kept, long))
        return _write(log, head, io.BytesIO(nodes))
    except (struct.error, OverflowError):
        return False
    except OSError as error:
        raise StorageError.of(f"write {tree_file(log)}", error) from error


def _write(log: Path, head: bytes, nodes: BinaryIO) -> bool:
    """Write a head and what is left of nodes; return False if the head is too large to be read. Raises OSError."""
    if len(head) > _MOST_HEAD:
        return False
    half = log.with_name(f"{log.name}{SUFFIX}.part")
    half.unlink(missing_ok=True)  # one that was left behind would keep its mode
    with open(half, "wb", opener=private.opener) as file:
        file.write(_START.pack(_MAGIC, hashlib.sha256(head).digest(), len(head)) + head)
        shutil.copyfileobj(nodes, file)
    half.replace(tree_file(log))
    return True


def _long(log: LoggedBlocks, nodes: bytearray) -> _Long:
    stages = {}
    for stage, one in log.stages.items():
        tree = one.tree
        stages[stage] = Top(tree.height, tree.root, *write(tree, tree.height, 0, log.places, nodes))
    return _Long(stages, log.last_loss)


_HEAD = msgspec.msgpack.Decoder(_Head)


def _head(file: BinaryIO) -> _Head:
    """Read the head of a file, up to its nodes. Raises struct.error, or one of UNREADABLE, if it is not whole."""
    magic, checksum, size = _START.unpack(file.read(_START.size))
    data = file.read(size) if magic == _MAGIC and size <= _MOST_HEAD else b""
    intact = hashlib.sha256(data).digest() == checksum
    return _HEAD.decode(data if intact else b"")


def read(log: Path, fetch: Callable[[], None] = lambda: None) -> Process | None:
    """Return what an event log has, None if it has no trees, or they are not of this log, or cannot be read.

    The log need not be there; ``fetch`` is to bring it when a step is asked for.
    """
    path = tree_file(log.absolute())
    try:
        with path.open("rb", buffering=0) as file:
            head, base = _head(file), file.tell()
        if path.stat().st_size != base + head.nodes or (log.exists() and log.stat().st_size != head.log):
            return None
        parts = list(head.process.trainings)
        for index, long in head.long.items():
            origin = Origin(log.absolute(), parts[index].framework, head.process.lanes[index])
            parts[index] = _training(parts[index], LoggedBlocks(origin, fetch), path, long, base)
    except (OSError, struct.error, IndexError, *UNREADABLE):
        return None
    return dataclasses.replace(head.process, trainings=tuple(parts))


def _training(training: Training, log: LoggedBlocks, path: Path, long: _Long, base: int) -> Training:
    trees = {stage: FoldedTree(path, base, top) for stage, top in long.stages.items()}
    log.stages = {stage: FoldedStage(tree) for stage, tree in trees.items()}
    log.places, log.last_loss = Places(tuple(trees.values())), long.last_loss
    return changed(training, digests={stage: LoggedSteps(log, stage) for stage in trees}, losses=LoggedLosses(log))


def rename(log: Path, change: Callable[[bytes], bytes]) -> bool:
    """Change the texts in the head of an event log's trees, each of them given to ``change`` as JSON.

    The event log itself stays as it is: trees have places in it. Return whether the head can be read, before and
    afterwards. Raises OSError.
    """
    with tree_file(log).open("rb") as file:
        try:
            head = msgspec.to_builtins(_head(file), builtin_types=(bytes,))
        except (struct.error, *UNREADABLE):
            return False
        return _write(log, msgspec.msgpack.encode(_renamed(head, change)), file)


def _renamed(value: Any, change: Callable[[bytes], bytes]) -> Any:
    if isinstance(value, str):
        return msgspec.json.decode(change(msgspec.json.encode(value)))
    if isinstance(value, dict):
        return {_renamed(key, change): _renamed(one, change) for key, one in value.items()}
    return [_renamed(one, change) for one in value] if isinstance(value, list | tuple) else value


def fold_run(folder: Path) -> None:
    """Fold the event logs of a run. Raises StorageError as fold does."""
    for log in logs(folder / wire.LOGS):
        fold(log)


def read_folded(
    folder: Path, known: dict[bytes, Block] | None = None, fetch: Callable[[], None] = lambda: None
) -> list[Process]:
    """Return the processes of a run as event_logs.read_run does: of a log with trees, from them.

    The event logs of such processes need not be there. If a step is asked for, ``fetch`` is to bring them. If neither a
    log nor its trees can be read, the process is torn.
    """
    known, log_folder = {} if known is None else known, folder / wire.LOGS
    folded = [path.with_name(path.name.removesuffix(SUFFIX)) for path in log_folder.glob(f"*{wire.LOG_SUFFIX}{SUFFIX}")]
    processes = [read(log, fetch) or read_process(log, known) for log in sorted({*logs(log_folder), *folded})]
    return of_run(processes)
