"""The logs of a run's processes, put together as trainings in an order that is the same in every run."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from msgspec.structs import replace

from detaudit import redact, wire
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
    is_inference,
    series,
)
from detaudit.runs import log_rows
from detaudit.runs.log_records import (
    Bye,
    Data,
    Environ,
    Final,
    FlagLine,
    Framework,
    Generators,
    Held,
    Hello,
    Identity,
    Left,
    Line,
    NameLine,
    ProbeLine,
    Read,
    SetsSoFar,
    SettingsLine,
    SourceLine,
    State,
    Torn,
    TrainingLine,
    Trouble,
    Undigested,
    UnseenLine,
    WeightsLine,
    Wrote,
    lines_of,
    plain,
)
from detaudit.runs.log_rows import (
    SUFFIX,
    Key,
    Numbers,
    Recorded,
    RowsSoFar,
    blocks_of,
    folded,
    recorded,
    rows_of,
    scan,
    size_of,
)

# Put a training together from the lines of an event log and its rows.


class TrainingSoFar:
    """What the lines of an event log say of a training."""

    def __init__(self) -> None:
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

    def training(self, key: Key, recorded: Recorded) -> Training:
        """Return the training, of which ``recorded`` are the rows."""
        return Training(
            framework=key.framework,
            unplaced=key.lane > 0,
            steps=recorded.steps,
            digests=recorded.digests,
            losses=recorded.losses,
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


def _trainings(so_far: Mapping[Key, TrainingSoFar], rows: Mapping[Key, Recorded]) -> tuple[Training, ...]:
    """Return the trainings of a process. It records the models of its threads together."""
    for key, one in so_far.items():
        threads = [(other, its) for other, its in so_far.items() if other.framework == key.framework and other.lane]
        threads = [(other, its) for other, its in threads if its.final]
        if one.final and one.final.steps and not threads:  # what ran before the training only is not of the training
            one.freed = [state for state in one.freed if not state.early]
        if not key.lane and not one.final and threads:
            _, first = min(threads, key=lambda thread: in_order(thread[1].training(thread[0], rows[thread[0]])))
            first.freed += one.freed
            first.live = first.live or one.live
    return tuple(one.training(key, rows[key]) for key, one in so_far.items())


def in_order(training: Training) -> str:
    """Return a text by which trainings are put in an order that is the same in every run with the same results."""
    final = training.final or FinalState()
    initial = series.fingerprint(training.digests.get(Stage.INIT, {}))
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
    held: dict[Key, Held] = field(default_factory=dict)
    probes: list[ProbeLine] = field(default_factory=list)
    undigested: list[Undigested] = field(default_factory=list)
    unseen: list[UnseenLine] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    trainings: tuple[Training, ...] = ()
    lanes: tuple[int, ...] = ()
    wrote: list[Wrote] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    read: list[Read] = field(default_factory=list)
    data: list[Data] = field(default_factory=list)
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


def read_process(path: Path, fetch: Callable[[], None] = lambda: None) -> Process:
    """Return the process of an event log. If its rows are not there when one is asked for, ``fetch`` is to bring them.

    Until then, the blocks of a log that was folded stand for them.
    """
    path = path.absolute()
    rows, size = rows_of(path), size_of(rows_of(path))  # before the lines, so that all is known that rows point to
    process: Process | None = None
    so_far: defaultdict[Key, TrainingSoFar] = defaultdict(TrainingSoFar)
    numbers, said = Numbers(), 0
    for line in lines_of(path):
        match line:
            case Hello():
                process = Process(line, line.identity)
                if line.schema != wire.SCHEMA:  # what follows may mean something else
                    process.torn = True
                    return process
            case _ if process is None:
                return _unidentified(path)
            case TrainingLine() | NameLine():
                numbers.take(line)
                if isinstance(line, TrainingLine):
                    so_far[Key(line.fw, line.lane)]
            case Final() | State() | WeightsLine():
                so_far[Key(line.fw, line.lane)].take(line)
                # Something was trained after the end of a task of a pool: the next task began.
                process.ended = process.ended and (isinstance(line, State) or is_inference(line.fw))
            case Bye():
                process.ended, process.started, said = True, line.started, line.rows
            case _:
                _take(process, line)
    if process is None:
        return _unidentified(path)
    scanned = scan(rows, size, numbers) if rows.exists() else (folded(path) or scan(rows, 0, numbers))
    process.torn = process.torn or scanned.torn or scanned.readable < said
    process.ended = process.ended and all(
        one.end <= said or is_inference(key.framework) for key, one in scanned.trainings.items()
    )
    none = RowsSoFar()
    of_rows = {key: recorded(rows, key, numbers, scanned.trainings.get(key, none), fetch) for key in so_far}
    process.trainings, process.lanes = _trainings(so_far, of_rows), tuple(key.lane for key in so_far)
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
    Data: "data",
}


def _take(process: Process, line: Line) -> None:
    match line:
        case Identity():
            process.identity = line.identity
        case SettingsLine():
            process.settings = line
        case Generators():
            process.generators = process.generators or line.states
        case Held():
            process.held[Key(line.fw, line.lane)] = line
        case Torn():
            process.torn = True
        case _ if type(line) in _LISTS:
            getattr(process, _LISTS[type(line)]).append(line)
        case _:
            pass


def read_run(folder: Path, fetch: Callable[[], None] = lambda: None) -> list[Process]:
    """Return the processes of a run, as of_run does; ``fetch`` is as of read_process."""
    return of_run([read_process(path, fetch) for path in logs(folder / wire.LOGS)])


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


def loaded_files(processes: Iterable["Process"], cwd: Path) -> set[str]:
    """Return the user's source files that processes of a run in ``cwd`` loaded, as people name them."""
    return {display_path(file, cwd) for one in processes if one.settings for file in one.settings.files}


# Fold the event logs of a run, so that they are compared without most of their rows.


def fold(log: Path) -> bool:
    """Write the blocks of an event log; return whether it has any. Raises StorageError if they cannot be written."""
    numbers, rows = Numbers(), rows_of(log)
    size = size_of(rows)
    for line in lines_of(log):
        if isinstance(line, TrainingLine | NameLine):
            numbers.take(line)
    try:
        return log_rows.fold(log, scan(rows, size, numbers))
    except OSError as error:
        raise StorageError.of(f"write {blocks_of(log)}", error) from error


def fold_run(folder: Path) -> None:
    """Fold the event logs of a run. Raises StorageError as fold does."""
    for log in logs(folder / wire.LOGS):
        fold(log)


def is_folded(path: Path) -> bool:
    """Return whether a file has the rows of an event log that has blocks."""
    return path.suffix == wire.ROWS_SUFFIX and path.with_suffix(SUFFIX).is_file()
