"""Fold an event log: a small file beside it has the trees of its long trainings, and is read in its place.

The file begins with a head: all that was recorded but the steps of long trainings, and the roots of their trees, by
stage. The nodes of the trees follow. The steps themselves are still in the event log alone: runs whose roots are equal
are compared without it, and of others only the blocks are read that a tree leads to.
"""

import dataclasses
import hashlib
import io
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec.structs import replace as changed

from detaudit import private, wire
from detaudit.auditor.evidence import trainings
from detaudit.auditor.evidence.event_logs import Process, logs, of_run, read_process
from detaudit.auditor.evidence.event_records import UNREADABLE
from detaudit.auditor.evidence.log_blocks import LoggedBlocks, LoggedLosses, LoggedSteps, Origin
from detaudit.auditor.evidence.logged import Block
from detaudit.auditor.evidence.tree_nodes import FoldedStage, FoldedTree, Places, Top, write
from detaudit.errors import StorageError
from detaudit.model import Number, Stage, Training

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
        for place, part in enumerate(process.trainings):
            if isinstance(part.losses, LoggedLosses):
                long[place] = _long(part.losses.log, nodes)
                parts.append(changed(part, digests={}, losses={}))
            elif sum(map(len, part.digests.values())) > trainings.MOST_HELD:
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


def _head(file: BinaryIO) -> _Head:
    """Read the head of a file, up to its nodes. Raises struct.error, or one of UNREADABLE, if it is not whole."""
    magic, checksum, size = _START.unpack(file.read(_START.size))
    data = file.read(size) if magic == _MAGIC and size <= _MOST_HEAD else b""
    whole = hashlib.sha256(data).digest() == checksum
    return msgspec.msgpack.decode(data if whole else b"", type=_Head)


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
        for place, long in head.long.items():
            origin = Origin(log.absolute(), parts[place].framework, head.process.lanes[place])
            parts[place] = _training(parts[place], LoggedBlocks(origin, fetch), path, long, base)
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
            found = msgspec.to_builtins(_head(file), builtin_types=(bytes,))
        except (struct.error, *UNREADABLE):
            return False
        return _write(log, msgspec.msgpack.encode(_renamed(found, change)), file)


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


def read_run(
    folder: Path, known: dict[bytes, Block] | None = None, fetch: Callable[[], None] = lambda: None
) -> list[Process]:
    """Return the processes of a run as event_logs.read_run does: of a log with trees, from them.

    The event logs of such processes need not be there. If a step is asked for, ``fetch`` is to bring them. If neither a
    log nor its trees can be read, the process is torn.
    """
    known, place = {} if known is None else known, folder / wire.LOGS
    folded = [path.with_name(path.name.removesuffix(SUFFIX)) for path in place.glob(f"*{wire.LOG_SUFFIX}{SUFFIX}")]
    found = [read(log, fetch) or read_process(log, known) for log in sorted({*logs(place), *folded})]
    return of_run(found)
