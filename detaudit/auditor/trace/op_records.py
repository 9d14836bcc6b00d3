"""The lines of the second file of a process that was watched more closely, decoded; see wire.py for each."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from detaudit import wire
from detaudit.auditor.evidence.event_logs import Process


class OpLine(msgspec.Struct, frozen=True, tag_field="k", tag="op"):
    """An operation: ``ins`` are (digest, storage), ``outs`` (digest, storage, whether all of it was written).

    Of one that is only ``listed`` nothing is known but that it may race.
    """

    n: int
    thread: str
    step: int
    op: str
    ins: tuple[tuple[str, int], ...]
    outs: tuple[tuple[str, int, bool], ...]
    file: str = ""
    line: int = 0
    key: str = ""
    node: str = ""
    module: str = ""
    backward: bool = False
    random: bool = False
    uninitialized: bool = False
    shared: tuple[int, ...] = ()
    state: str = ""
    listed: bool = False

    @property
    def signature(self) -> tuple[str, str, int, int]:
        """What is the same wherever a program does the same: the operation, its line, how many tensors go in."""
        return self.op, self.file, self.line, len(self.ins)


class TensorLine(msgspec.Struct, frozen=True, tag_field="k", tag="tensor"):
    """A tensor that was asked for; its bytes are in ``file`` beside the trace."""

    role: str
    digest: str
    dtype: str
    shape: tuple[int, ...]
    file: str


_DECODER = msgspec.json.Decoder(OpLine | TensorLine)
_OURS = (b'{"k":"op"', b'{"k":"tensor"')


def path_of(folder: Path, process: Process) -> Path | None:
    """Return the second file of a process of the run that is kept in ``folder``, None if it left none."""
    found = sorted((folder / wire.LOGS).glob(f"{process.hello.pid}.*{wire.OPS_SUFFIX}"))
    return found[-1] if found else None


def read(path: Path | None) -> Iterator[OpLine | TensorLine]:
    """Yield the operations and tensors of a file, as far as it can be read; a torn last line is none."""
    if path is None:
        return
    with path.open("rb") as file:
        for raw in file:
            try:
                yield _DECODER.decode(raw)
            except msgspec.ValidationError:
                if raw.startswith(_OURS):  # else a line of another level
                    raise
            except msgspec.DecodeError:
                return


def operations(path: Path | None) -> Iterator[OpLine]:
    """Yield the operations of a file."""
    return (line for line in read(path) if isinstance(line, OpLine))
