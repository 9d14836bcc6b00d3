"""Read what is in files that a run wrote, piece by piece, by their first bytes and never by their names.

No pickle is loaded, and nothing that a file holds is written under its name. Each format is a row of ``FORMATS`` and a
module with a function ``parts``.
"""

import importlib
import lzma
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from detaudit.outputs.compare import OCDBT_DATA

PIECE = 4 * 2**20
"""Bytes that are held in memory at a time; a multiple of every item's size."""

MOST_UNPACKED = 2**30
"""Bytes that a file of any size may unpack to."""

MOST_RATIO = 100
"""A larger one may unpack to this many times its size: weights never get that much smaller, and bombs do."""

MOST_DIMENSIONS = 64
MOST_DEPTH = 200

PIXELS = "pixels"
"""The name of the part of a picture that is drawn."""

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
    """One value of a file: an array, a number, a text, or bytes.

    ``name`` is the path inside (``optimizer.state.0.exp_avg``; ``row 3, target``), each once in a file. ``dtype`` of an
    array is in NumPy's spelling if NumPy has one, then `` F`` in Fortran's order; ``number`` and ``text`` are of one
    number or text, whose ``text`` is as people read it; ``""`` is of other bytes. ``pieces`` are the bytes, in a form
    that is the same for equal values, to be read before the next part is asked for. ``generator``: it is the state of a
    random generator.
    """

    name: str
    pieces: Iterator[bytes]
    dtype: str = ""
    shape: tuple[int, ...] = ()
    text: str = ""
    generator: bool = False


MOST_DECIMAL = 10**1000
NUMBER, TEXT = "number", "text"


def number(name: str, value: float) -> Part:
    """Return one number as a part."""
    shown = repr(value) if not isinstance(value, int) or abs(value) < MOST_DECIMAL else hex(value)
    return Part(name, iter([shown.encode()]), NUMBER, (), shown)


def text(name: str, value: str) -> Part:
    """Return one text as a part."""
    return Part(name, iter([value.encode(errors="surrogatepass")]), TEXT, (), value)


def leaves(name: str, value: Any, depth: int = 0) -> Iterator[Part]:
    """Yield the numbers and texts in lists and dicts, below ``name``."""
    if depth > MOST_DEPTH:
        raise ValueError("it is nested too deeply")
    if isinstance(value, dict | list | tuple):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(f"{name}.{key}" if name else str(key), one, depth + 1)
        if not value:
            yield text(name, "{}" if isinstance(value, dict) else "[]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield number(name, value)
    elif isinstance(value, bytes | bytearray):
        yield opaque(name, bytes(value))
    else:
        yield text(name, str(value))


def opaque(name: str, data: bytes) -> Part:
    """Return bytes as a part."""
    return Part(name, iter([data]))


HEAD = 2**16
"""Bytes at the start of a file by which its format is recognized."""

TAIL = 64
"""Bytes at the end, where some formats have their mark."""


class Start:
    """What a format is recognized by: the first and last bytes of a file, and the names in a zip."""

    def __init__(self, path: Path) -> None:
        self.path, self.size = path, path.stat().st_size
        with path.open("rb") as file:
            self.head = file.read(HEAD)
            file.seek(max(0, self.size - TAIL))
            self.tail = file.read(TAIL)

    @cached_property
    def members(self) -> tuple[str, ...]:
        """The names in a zip, that of the first member only if it is broken, none if it is no zip."""
        if not self.head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            return ()
        try:
            with zipfile.ZipFile(self.path) as archive:
                return tuple(archive.namelist())
        except BROKEN:
            size = int.from_bytes(self.head[26:28], "little")
            return (self.head[30 : 30 + size].decode("utf-8", "backslashreplace"),)


SQLITE = "sqlite"
Rows: TypeAlias = Mapping[str, Mapping[bytes, int]]
"""The digests of the rows of each table of a database, and how often each is there."""


@dataclass(frozen=True)
class Format:
    """A format: its name, the module here that reads it, and whether a file is of it.

    Without a ``test``, the module has one, ``is_NAME(head, path)``, and ``NAME_parts`` reads the file, not ``parts``:
    such a module has several formats. A ``guess`` is one of text: what cannot be read as that is read as ``PLAIN``.
    ``without`` are rows that are left out of a database.
    """

    name: str
    module: str
    test: Callable[[Start], Any] | None = None
    guess: bool = False
    without: Rows | None = None

    def fits(self, start: Start) -> bool:
        """Return whether a file that begins so is of this format."""
        return bool(self.test(start) if self.test else self._is_of(start.head, start.path))

    def parts(self, path: Path) -> Iterator[Part]:
        """Yield the parts of a file, each name once.

        Raises one of BROKEN, also between two parts, if the file is not what it should be, UnusableError
        if not even its bytes can be compared, ModuleNotFoundError if a library for it is not installed.
        """
        read = self._named("parts" if self.test else f"{self.name}_parts")
        file_parts: Iterator[Part] = read(path) if self.without is None else read(path, self.without)
        return file_parts

    @cached_property
    def _is_of(self) -> Callable[[bytes, Path], Any]:
        return self._named(f"is_{self.name}")

    def _named(self, function: str) -> Callable[..., Any]:
        return _function(self.module, function)


def journals(path: Path) -> list[Path]:
    """Return the write-ahead log or the journal of a database of SQLite, whose rows are not in the file itself."""
    beside = (Path(f"{path}-wal"), Path(f"{path}-journal"))
    return [one for one in beside if one.is_file() and one.stat().st_size > 0]


@cache
def _function(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module here, which is imported when it is needed."""
    return cast(Callable[..., Any], getattr(importlib.import_module(f"{__name__}.{module}"), name))


def _begins(*marks: bytes) -> Callable[[Start], bool]:
    return lambda start: start.head.startswith(marks)


def _tested(module: str, name: str) -> Callable[[Start], Any]:
    return lambda start: _function(module, name)(start)


def _is_safetensors(start: Start) -> bool:
    # The header has 100 MiB at most, so that the upper half of its length is zero: true of one that is cut off too.
    return start.head[4:9] == b"\0\0\0\0{"


def _is_hdf5(start: Start) -> bool:
    # After a user block of 512 bytes or twice as many, and so on: the specification of HDF5, section II.A
    offsets = (0, 512, 1024, 2048, 4096, 8192, 16384, 32768)
    return any(start.head.startswith(b"\x89HDF\r\n\x1a\n", offset) for offset in offsets)


def _holds(*ends: str) -> Callable[[Start], bool]:
    """Return whether a zip has, for each of these, a member whose name ends so."""
    return lambda start: all(any(one.endswith(end) for one in start.members) for end in ends)


_XGBOOST = re.compile(rb'\s*\{\s*(?:L[\0-\xff]{8}|i\x07|U\x07|I[\0-\xff]{2}|l[\0-\xff]{4}|")learner"?')

PLAIN = Format("text", "documents")

FORMATS = (
    Format("torch", "checkpoint", _holds("/data.pkl")),
    Format("torch", "checkpoint", _tested("checkpoint", "is_legacy")),
    Format("torch-export", "exported", _holds("/archive_format", "/byteorder")),
    Format("keras", "keras", _holds("config.json", "metadata.json", ".h5")),
    Format("skops", "skops", _holds("schema.json", ".npy")),
    Format("npz", "npz", lambda start: start.members and all(one.endswith(".npy") for one in start.members)),
    Format("npy", "npy", _begins(b"\x93NUMPY")),
    Format("hdf5", "hdf5", _is_hdf5),
    Format("safetensors", "safetensors", _is_safetensors),
    Format("lightgbm", "boosters", _begins(b"tree\nversion=")),
    Format("xgboost", "boosters", lambda start: _XGBOOST.match(start.head)),
    Format("catboost", "boosters", _begins(b"CBM1")),
    Format(SQLITE, "sqlite", _begins(b"SQLite format 3\0")),
    Format("matlab", "matlab", _begins(b"MATLAB 5.0 MAT-file")),
    Format("dicom", "dicom"),
    Format("parquet", "tables"),
    Format("arrow", "tables"),
    Format("duckdb", "tables"),
    Format("orc", "tables"),
    Format("avro", "tables"),
    Format("stata", "tables"),
    Format("xlsx", "spreadsheets", _holds("xl/workbook.xml", "xl/_rels/workbook.xml.rels")),
    Format("zip", "archives"),
    Format("gzip", "archives"),
    Format("bz2", "archives"),
    Format("xz", "archives"),
    Format("zstd", "archives"),
    Format("zlib", "compressed", _tested("compressed", "is_packed")),
    Format("pickle", "pickles", _tested("pickles", "is_pickle")),
    Format("tar", "archives"),
    Format("ocdbt", "orbax", _begins(b"\x0c\xdb\x3a\x2a")),
    Format(OCDBT_DATA, "orbax", _tested("orbax", "is_data")),
    Format("tensorflow", "tensorflow", _tested("tensorflow", "is_checkpoint")),
    Format("events", "events"),
    Format("records", "events"),
    Format("png", "media"),
    Format("jpeg", "media"),
    Format("gif", "media"),
    Format("bmp", "media"),
    Format("tiff", "media"),
    Format("webp", "media"),
    Format("pdf", "media"),
    Format("plist", "documents"),
    Format("svg", "media", guess=True),
    Format("html", "documents", guess=True),
    Format("json", "documents", guess=True),
    Format("jsonl", "documents", guess=True),
    Format("toml", "documents", guess=True),
    Format("ini", "documents", guess=True),
    Format("csv", "tables", guess=True),
    Format("yaml", "documents", guess=True),
    PLAIN,
    Format("savedmodel", "graphs", _tested("graphs", "is_saved_model")),
    Format("fingerprint", "graphs", _tested("graphs", "is_fingerprint")),
    Format("onnx", "graphs", _tested("graphs", "is_onnx")),
    Format("msgpack", "msgpack", _tested("msgpack", "is_msgpack")),
)
"""The formats in the order in which they are tried: what is certain before what is a guess."""

BYTES = "bytes"
"""The format of what has no other: its bytes are one part."""


def format_of(path: Path) -> Format | None:
    """Return the format of a file, None if it is none of the table."""
    start = Start(path)
    return next((one for one in FORMATS if one.fits(start)), None) if start.size else None


def parts(path: Path) -> tuple[str, Iterator[Part]]:
    """Return the name of a file's format and its parts.

    Raises what Format.parts does, now or when the parts are read. Of an unknown format there is one part, of all bytes.
    """
    file_format = format_of(path)
    return (file_format.name, file_format.parts(path)) if file_format is not None else (BYTES, whole_file(path))


def whole_file(path: Path) -> Iterator[Part]:
    """Yield a file as one part, of its bytes."""
    with path.open("rb") as file:
        yield Part("", pieces(file))


def unique(file_parts: Iterator[Part]) -> Iterator[Part]:
    """Yield parts with each name once: what has the name of an earlier one gets a number."""
    names: Counter[str] = Counter()
    for part in file_parts:
        names[part.name] += 1
        again = names[part.name]
        yield part if again == 1 else replace(part, name=f"{part.name}#{again}")


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
    dimensions = tuple(numbers)
    if len(dimensions) > MOST_DIMENSIONS or not all(isinstance(one, int) and 0 <= one < 2**63 for one in dimensions):
        raise ValueError("a shape in it is none")
    return dimensions


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
