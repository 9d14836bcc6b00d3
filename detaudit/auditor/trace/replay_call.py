"""Read the call of an operation that an instrumented run saved; recorder/replay describes its line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from detaudit.auditor.evidence.event_records import UNREADABLE
from detaudit.model import Obstacle

_OURS = b'{"k":"call"'


class Storage(msgspec.Struct, frozen=True):
    """The memory of tensors of torch: where its bytes are, next to the log; ``dtype`` is that of the first tensor."""

    file: Annotated[str, Meta(pattern=r"^[^/\x00]+\Z")]
    dtype: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]{1,64}\Z")]
    bytes: Annotated[int, Meta(ge=0)]
    device: str


class Input(msgspec.Struct, frozen=True):
    """An input of an operation of TensorFlow: a value, or a variable with this value."""

    kind: Literal["variable", "value"]
    file: Annotated[str, Meta(pattern=r"^[^/\x00]+\Z")]
    dtype: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]{1,64}\Z")]
    shape: tuple[Annotated[int, Meta(ge=0)], ...]


class Call(msgspec.Struct, frozen=True, tag_field="k", tag="call"):
    """What the auditor reads of a call; the process that repeats it reads the rest."""

    framework: Literal["torch", "tensorflow"]
    op: str
    obstacle: Obstacle | None = None
    detail: str = ""
    python: str = ""
    backward: bool = False
    args: Any = None
    kwargs: Any = None
    storages: tuple[Storage, ...] = ()
    modules: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    node: str = ""
    inputs: tuple[Input, ...] = ()


@dataclass(frozen=True)
class Saved:
    """A call, the line as it was written, and the folder of its files."""

    call: Call
    raw: dict[str, Any]
    folder: Path

    def bytes_of(self, file: str) -> bytes:
        """Return the bytes of a file of the call. Raises OSError."""
        return (self.folder / file).read_bytes()

    def discard(self) -> None:
        """Remove the files of the call."""
        files = [one.file for one in self.call.storages] + [one.file for one in self.call.inputs]
        for file in files:
            (self.folder / file).unlink(missing_ok=True)


def read(path: Path | None) -> Saved | None:
    """Return the call in an instrumentation log, None if there is none that can be decoded."""
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            raw = next((line for line in file if line.startswith(_OURS)), None)
        return Saved(msgspec.json.decode(raw, type=Call), msgspec.json.decode(raw), path.parent) if raw else None
    except (OSError, *UNREADABLE):
        return None
