"""Read the tensors in files that a training writes, piece by piece, without ever loading a pickle."""

import importlib
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, cast

PIECE = 4 * 2**20
"""Bytes that are held in memory at a time; a multiple of every item's size."""

MOST_UNPACKED = 2**30
"""Bytes that a file of any size may unpack to."""

MOST_RATIO = 100
"""A larger one may unpack to this many times its size: weights never get that much smaller, and bombs do."""

MOST_DIMENSIONS = 64

BROKEN = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    lzma.LZMAError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What the standard library and h5py raise if a file is not what its name says."""


class UnusableError(Exception):
    """The file cannot be compared, not even by its bytes; the message says why, and what to do."""


@dataclass(frozen=True)
class Part:
    """One tensor of a file, or something beside the tensors (``dtype`` is ``""``).

    ``dtype`` is in NumPy's spelling if NumPy has one, then `` F`` in Fortran's order; ``pieces`` are the bytes,
    to be read before the next part is asked for.
    """

    name: str
    pieces: Iterator[bytes]
    dtype: str = ""
    shape: tuple[int, ...] = ()


class Reader(Protocol):
    """One format; each module of the table below is one."""

    def parts(self, path: Path) -> Iterator[Part] | None:
        """Return the parts of a file, each name once; None if the file is of another format that shares the suffix.

        Raises one of BROKEN, also between two parts, if the file is not what it should be, UnusableError
        if not even its bytes can be compared.
        """


_TORCH = "detaudit.auditor.evidence.formats.torch"
_HDF5 = "detaudit.auditor.evidence.formats.hdf5"

READERS = {
    ".safetensors": "detaudit.auditor.evidence.formats.safetensors",
    ".npy": "detaudit.auditor.evidence.formats.npy",
    ".npz": "detaudit.auditor.evidence.formats.npz",
    ".pt": _TORCH,
    ".pth": _TORCH,
    ".bin": _TORCH,
    ".ckpt": _TORCH,
    ".keras": "detaudit.auditor.evidence.formats.keras",
    ".h5": _HDF5,
    ".hdf5": _HDF5,
}
"""The suffixes whose tensors are compared; all other files are by their bytes."""

_CHECKPOINT = "detaudit.auditor.evidence.formats.checkpoint"
_PICKLES = "detaudit.auditor.evidence.formats.pickles"
_BOOSTERS = "detaudit.auditor.evidence.formats.boosters"

MODEL_READERS = {
    **READERS,
    **dict.fromkeys((".pt", ".pth", ".bin", ".ckpt"), _CHECKPOINT),
    **dict.fromkeys((".pkl", ".pickle", ".joblib", ".gz", ".z", ".bz2", ".xz", ".lzma"), _PICKLES),
    **dict.fromkeys((".json", ".ubj", ".model", ".txt", ".lgb", ".xgb"), _BOOSTERS),
}
"""The suffixes of files that may hold a model, and that are compared without --artifact."""

NEEDS_H5PY = (".keras", ".h5", ".hdf5")


def reader_for(path: Path, readers: Mapping[str, str] = READERS) -> Reader | None:
    """Return the reader for a file's suffix, None if the file is compared by its bytes."""
    module = readers.get(path.suffix.lower())
    return cast(Reader, importlib.import_module(module)) if module else None


def pieces(file: IO[bytes], size: int | None = None) -> Iterator[bytes]:
    """Yield the next ``size`` bytes of a file, or all that are left. Raises EOFError if there are fewer."""
    while size is None or size > 0:
        piece = file.read(PIECE if size is None else min(PIECE, size))
        if not piece:
            if size is None:
                return
            raise EOFError(f"{size} bytes are missing at its end")
        if size is not None:
            size -= len(piece)
        yield piece


def check_unpacked(unpacked: int, size: int) -> None:
    """Raise ValueError if a file of ``size`` bytes unpacks to far more."""
    if unpacked > max(MOST_UNPACKED, MOST_RATIO * size):
        raise ValueError(f"it unpacks to {MOST_RATIO} times its size or more")


def extents(numbers: Any) -> tuple[int, ...]:
    """Return a shape or strides that a file names. Raises ValueError if they are none."""
    found = tuple(numbers)
    if len(found) > MOST_DIMENSIONS or not all(isinstance(one, int) and 0 <= one < 2**63 for one in found):
        raise ValueError("a shape in it is none")
    return found


def unzipped(path: Path) -> zipfile.ZipFile:
    """Open a zip. Nothing in it is ever written under its name. Raises ValueError for one that unpacks to too much."""
    archive = zipfile.ZipFile(path)
    try:
        check_unpacked(sum(member.file_size for member in archive.infolist()), path.stat().st_size)
    except ValueError:
        archive.close()
        raise
    return archive


def zip_part(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, dtype: str = "") -> Part:
    """Return a member of a zip as one part."""

    def read() -> Iterator[bytes]:
        with archive.open(member) as file:
            yield from pieces(file)

    return Part(name, read(), dtype)
