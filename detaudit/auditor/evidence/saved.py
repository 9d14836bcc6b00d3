"""Read a file that a run wrote: its tensors decide, what else it holds is only listed if it differs."""

import hashlib
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from detaudit.auditor.evidence.formats import (
    BROKEN,
    MODEL_READERS,
    Part,
    UnusableError,
    check_unpacked,
    pieces,
    reader_for,
)

MOST_BYTES = 16 * 2**20
"""Of a file without tensors, the bytes that are compared, with its size."""

MOST_BESIDE = 200
"""Names of what lies beside the tensors of a file; further ones are put together."""

_OTHERS = "…"
_MOST_PROBLEM = 300

# The states of torch's and NumPy's Mersenne Twister, whatever they are called.
_STATES = {("u1", (5056,)), ("u4", (624,))}
_GENERATOR = re.compile(r"(^|[._])(p?rng|random_state|bit_generator|generator_state|seed_seq)", re.IGNORECASE)
_TIME = re.compile(r"(times?|timestamps?|seconds|durations?|elapsed)(\.\d+)?$", re.IGNORECASE)


@dataclass(frozen=True)
class Contents:
    """What a file holds: digests of its ``tensors``, and of what lies ``beside`` them, by name.

    A file without tensors has one ``digest`` of its bytes; ``problem`` says why its tensors cannot be read.
    """

    tensors: tuple[tuple[str, str], ...] = ()
    beside: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    raw: str = ""

    @property
    def digest(self) -> str:
        """One digest of all that it is compared by."""
        return hashlib.blake2b(repr(self.tensors).encode(), digest_size=16).hexdigest() if self.tensors else self.raw


def read(path: Path) -> Contents:
    """Return what is in a file. Raises OSError if it cannot be opened."""
    try:
        contents = _read(path)
    except UnusableError as error:
        contents = Contents(problem=str(error)[:_MOST_PROBLEM])
    if contents.tensors:
        return contents
    return Contents(beside=contents.beside, problem=contents.problem, raw=_of_bytes(path))


def _read(path: Path) -> Contents:
    try:
        reader, size = reader_for(path, MODEL_READERS), path.stat().st_size
        with warnings.catch_warnings():  # such as of escapes in a text
            warnings.simplefilter("ignore")
            found = reader.parts(path) if reader is not None and size else None
            return _contents(found, size) if found is not None else Contents()
    except ModuleNotFoundError as error:
        raise UnusableError(f"needs {error.name} to be read") from error
    except BROKEN as error:
        raise UnusableError(f"cannot be read as {path.suffix}: {type(error).__name__}: {error}") from error


def _contents(parts: Iterator[Part], size: int) -> Contents:
    tensors: list[tuple[str, str]] = []
    beside: dict[str, str] = {}
    unpacked = 0
    for part in parts:
        digest = hashlib.blake2b(repr((part.dtype, part.shape)).encode(), digest_size=16)
        for piece in part.pieces:
            digest.update(piece)
            unpacked += len(piece)
            check_unpacked(unpacked, size)
        if _decides(part):
            tensors.append((part.name, digest.hexdigest()))
        else:
            name = part.name if len(beside) < MOST_BESIDE else _OTHERS
            beside[name] = _joined(beside.get(name, ""), digest.hexdigest())
    return Contents(tuple(sorted(tensors)), beside)


def _joined(one: str, other: str) -> str:
    return hashlib.blake2b((one + other).encode(), digest_size=16).hexdigest() if one else other


def _decides(part: Part) -> bool:
    """Whether a part is a tensor: not what lies beside them, nor a generator's state, objects, or times."""
    kind = part.dtype.removesuffix(" F")
    if not kind or kind[1:].startswith("O") or (kind[1:], part.shape) in _STATES or _TIME.search(part.name):
        return False
    return not (kind[1:2] in "ui" and _GENERATOR.search(part.name))


def _of_bytes(path: Path) -> str:
    digest = hashlib.blake2b(str(path.stat().st_size).encode(), digest_size=16)
    with path.open("rb") as file:
        for piece in pieces(file, min(path.stat().st_size, MOST_BYTES)):
            digest.update(piece)
    return digest.hexdigest()
