"""Read event logs: what each process of a run recorded, as far as it got."""

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from detaudit import redact, wire
from detaudit.auditor.evidence.event_pieces import pieces
from detaudit.auditor.evidence.event_records import (
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
    SettingsLine,
    SourceLine,
    State,
    Torn,
    Trouble,
    Undigested,
    UnseenLine,
    WeightsLine,
    Wrote,
)
from detaudit.auditor.evidence.logged import Block
from detaudit.auditor.evidence.trainings import TrainingsSoFar, in_order
from detaudit.model import FITTED, Training, is_inference


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
        for kind, found in groupby(piece.lines, type):
            if process is not None and kind is Event:
                frameworks = growing.add(cast("list[Event]", list(found)), piece)
                process.ended = process.ended and all(map(is_inference, frameworks))
                continue
            for line in found:
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
    found: list[tuple[Process, Training]] = []
    alike: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for process in processes:
        for training, lane in zip_longest(process.trainings, process.lanes, fillvalue=0):
            if isinstance(training, Training) and training.steps > 0:
                if training.unplaced:
                    alike[() if lane else process.hello.argv].append(len(found))
                found.append((process, training))
    for places in alike.values():
        ordered = sorted((found[place] for place in places), key=lambda one: in_order(one[1]))
        for place, one in zip(places, ordered, strict=True):
            found[place] = one
    return sorted(found, key=lambda one: one[1].framework in FITTED)


def matching(processes: Iterable[Process], argument: str) -> list[Process]:
    """Return the processes whose command line contains ``argument``; all of them if it is empty."""
    written = redact.text(argument)  # as the recorder writes it
    return [process for process in processes if not argument or written in process.hello.argv]


def display_path(file: str, cwd: Path) -> str:
    """Return a file as people name it: relative if it is below the run's working directory."""
    return os.path.relpath(file, cwd) if file.startswith(f"{cwd}{os.sep}") else file
