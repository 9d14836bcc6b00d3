"""Read what torch.save and torch.distributed.checkpoint write, tensor by tensor; see formats/torch.py for the layout.

Only the elements that a tensor shows are read: the rest of its storage may be memory that was never written.
A ``.distcp`` file of torch.distributed.checkpoint holds what torch.save writes once for each tensor, one after another;
their names are in the pickle ``.metadata`` beside it (``FileSystemWriter``).
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from detaudit.runs.formats import Part, Start, check_unpacked, extents, pickles, pieces, torch, unique, zip_part
from detaudit.runs.formats.arrays import contents
from detaudit.runs.formats.standins import Call, Global, Mapping, Persistent
from detaudit.runs.formats.storages import layout_of, span

_LOCAL_HEADER = 30
"""Bytes before the name in the header of a member of a zip: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT."""

_END, _END_SIZE = b"PK\x05\x06", 22
_DIRECTORY, _FIRST = b"PK\x01\x02", b"PK\x03\x04"
_END64, _END64_SIZE, _LOCATOR_SIZE = b"PK\x06\x06", 56, 20
_COUNT = 8
"""Bytes of the number of elements before each storage, in the format of before 1.6."""

_METADATA = ".metadata"
MOST_METADATA = 256 * 2**20
MOST_ARCHIVES = 100_000

Read = Callable[[str, int, int], Iterator[bytes]]
"""Yields bytes of a storage: its key, where they begin, and how many."""


def is_legacy(start: Start) -> bool:
    """Return whether a file begins as torch's format of before 1.6 does, in any protocol of pickle."""
    return start.head[:1] == b"\x80" and torch.MAGIC in start.head[:32]


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return unique(_parts(path))


def _parts(path: Path) -> Iterator[Part]:
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(1) == b"\x80":
            file.seek(0)
            yield from _of_legacy(file, size)
            return
        archives = list(_archives(file, size))
        if len(archives) == 1:
            yield from _of_zip(file, archives[0], "")
            return
        names = _names(path)
        unpacked = 0
        for start, end in archives:
            unpacked += end - start
            check_unpacked(unpacked, size)
            yield from _of_zip(file, (start, end), names.get(start, f"tensor at {start}"))


class _Window(io.RawIOBase):
    """A part of a file as a file."""

    def __init__(self, file: IO[bytes], start: int, end: int) -> None:
        self._file, self._start, self._end, self._at = file, start, end, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max(0, offset + (0, self._at, self._end - self._start)[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._start + self._at)
        data = self._file.read(max(0, min(len(buffer), self._end - self._start - self._at)))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def _archives(file: IO[bytes], size: int) -> Iterator[tuple[int, int]]:
    """Yield where each zip begins and ends. Raises ValueError if they do not lie one after another.

    The end of a zip says how long its directory is and how far it is from the start, so that bytes of a tensor that
    look like an end are none.
    """
    start, count = 0, 0
    while start < size:
        count += 1
        end = _end_of(file, start, size) if count <= MOST_ARCHIVES else 0
        if not end:
            raise zipfile.BadZipFile("it is no zip, or one that is cut off")
        yield start, end
        start = end


def _end_of(file: IO[bytes], start: int, size: int) -> int:
    # The usual case, one archive, is looked for at the end of the file.
    file.seek(max(start, size - _END_SIZE))
    tail = file.read(_END_SIZE)
    if tail.startswith(_END) and _fits(file, start, size - _END_SIZE, tail):
        return size
    at, step = start, 4 * 2**20
    while at < size:
        file.seek(at)
        data = file.read(step + _END_SIZE)
        offset = data.find(_END)
        while 0 <= offset <= step:
            end = data[offset : offset + _END_SIZE]
            if len(end) == _END_SIZE and _fits(file, start, at + offset, end):
                return at + offset + _END_SIZE + int.from_bytes(end[20:22], "little")
            offset = data.find(_END, offset + 1)
        at += step
    return 0


def _fits(file: IO[bytes], start: int, at: int, end: bytes) -> bool:
    """Whether the end of a zip at ``at`` is of one that begins at ``start``."""
    length, offset = int.from_bytes(end[12:16], "little"), int.from_bytes(end[16:20], "little")
    if start + offset + length == at:
        file.seek(start + offset)
        return file.read(4) == _DIRECTORY
    before = at - _LOCATOR_SIZE - _END64_SIZE
    if before < start:
        return False
    file.seek(before)
    end64 = file.read(_END64_SIZE)
    length, offset = int.from_bytes(end64[40:48], "little"), int.from_bytes(end64[48:56], "little")
    return end64.startswith(_END64) and start + offset + length == before


def _of_zip(file: IO[bytes], bounds: tuple[int, int], prefix: str) -> Iterator[Part]:
    start, end = bounds
    window = _Window(file, start, end)
    with zipfile.ZipFile(io.BufferedReader(window)) as archive:
        check_unpacked(sum(member.file_size for member in archive.infolist()), end - start)
        root = torch.root_of(archive)
        if root is None:
            raise ValueError("it holds no data.pkl")
        if archive.getinfo(f"{root}data.pkl").file_size > torch.MOST_STRUCTURE:
            raise ValueError("its data.pkl is too large")
        big = torch.is_big(archive, root)
        with archive.open(f"{root}data.pkl") as structure:
            root_object = pickles.read(structure)

        def tensors(folder: str) -> Callable[[str, Any], Part | None]:
            def read(key: str, offset: int, size: int) -> Iterator[bytes]:
                return _bytes(archive, file, archive.getinfo(f"{root}{folder}/{key}"), (start, offset, size))

            return _tensors(lambda key: archive.getinfo(f"{root}{folder}/{key}").file_size, read, big)

        yield from contents(root_object, tensors("data"), prefix)
        for member in sorted(archive.namelist()):
            name = member.removeprefix(root)
            if name == "constants.pkl":  # of TorchScript
                with archive.open(member) as structure:
                    yield from contents(pickles.read(structure), tensors("constants"), f"{prefix} constants".strip())
            elif name.endswith(".py") and archive.getinfo(member).file_size <= torch.MOST_STRUCTURE:
                yield Part(f"{prefix} {name}".strip(), iter([_CONSTANTS.sub(_in_order, archive.read(member))]))
            elif name.startswith(("code/", "extra/")) and not name.endswith(".debug_pkl"):
                yield zip_part(archive, archive.getinfo(member), f"{prefix} {name}".strip())


_CONSTANTS = re.compile(rb"(?m)(?:^  \w+ : Final\[.*(?:\n|\Z))+")
"""The constants of a class of TorchScript, which it keeps in a set: their order depends on hashes."""


def _in_order(lines: re.Match[bytes]) -> bytes:
    return b"".join(sorted(lines[0].splitlines(keepends=True)))


def _tensors(length: Callable[[str], int], read: Read, big: bool) -> Callable[[str, Any], Part | None]:
    """Return what makes a part of a tensor whose storage is ``length`` bytes long."""

    def tensor(name: str, arguments: Any) -> Part | None:
        storage, offset, shape, strides = arguments[:4]
        if not isinstance(storage, Persistent) or storage.key[0] != "storage" or not isinstance(storage.key[2], str):
            return None
        shape, strides, (offset,) = extents(shape), extents(strides), extents((offset,))
        key, size = storage.key[2], length(storage.key[2])
        kind = torch.named_dtype(arguments) or torch.dtype_of(storage.key[1].name)
        if kind is None:  # elements of an unknown size
            return Part(name, read(key, 0, size), storage.key[1].name, shape)
        start, count = span(offset, shape, strides, torch.SIZES[kind], size)
        return Part(name, read(key, start, count), f"{'<>'[big]}{kind}{layout_of(shape, strides)}", shape)

    return tensor


def _bytes(
    archive: zipfile.ZipFile, raw: IO[bytes], member: zipfile.ZipInfo, at: tuple[int, int, int]
) -> Iterator[bytes]:
    first, start, size = at
    if member.compress_type != zipfile.ZIP_STORED:
        with archive.open(member) as file:
            file.seek(start)
            yield from pieces(file, size)
        return
    raw.seek(first + member.header_offset)
    header = raw.read(_LOCAL_HEADER)
    names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    raw.seek(first + member.header_offset + _LOCAL_HEADER + names + start)
    yield from pieces(raw, size)


def _of_legacy(file: IO[bytes], size: int) -> Iterator[Part]:
    """Read four pickles (a number, the version, the system, the object), then the keys and bytes of the storages."""
    _, _, system, root, keys = [pickles.read(file) for _ in range(5)]
    if not isinstance(keys, list):
        raise ValueError("it has no list of storages")
    big = isinstance(system, Mapping) and ("little_endian", False) in system.pairs
    kinds: dict[str, str] = {}
    list(contents(root, lambda name, arguments: _noted(kinds, name, arguments)))
    places: dict[str, tuple[int, int]] = {}
    for key in keys:
        count = int.from_bytes(b"".join(pieces(file, _COUNT)), "big" if big else "little")
        if key not in kinds:
            raise ValueError("it has a storage that nothing uses")
        length = count * torch.SIZES[kinds[key]]
        places[key] = file.tell(), length
        if length > size - file.tell():
            raise EOFError("it ends within a storage")
        file.seek(length, io.SEEK_CUR)

    def read(key: str, offset: int, count: int) -> Iterator[bytes]:
        file.seek(places[key][0] + offset)
        yield from pieces(file, count)

    yield from contents(root, _tensors(lambda key: places[key][1], read, big))


def _noted(kinds: dict[str, str], name: str, arguments: Any) -> Part | None:
    storage = arguments[0].key
    kind = torch.dtype_of(storage[1].name)
    # An untyped storage counts its bytes.
    kinds[storage[2]] = kind if kind is not None else "u1"
    return Part(name, iter(()))


def _names(path: Path) -> dict[int, str]:
    """Return the names of the tensors in a ``.distcp`` file by where they begin, nothing if that is not known."""
    try:
        with (path.parent / _METADATA).open("rb") as file:
            if file.seek(0, io.SEEK_END) > MOST_METADATA:
                return {}
            file.seek(0)
            metadata = pickles.read(file)
        stored = dict(metadata.state.pairs)["storage_data"]
        return dict(_stored(stored, path.name))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, EOFError):
        return {}


def _stored(stored: Mapping, file: str) -> Iterator[tuple[int, str]]:
    for index, info in stored.pairs:
        where, what = _attributes(info), _attributes(index)
        if where["relative_path"] == file:
            offset = what.get("offset")
            chunk = f" {tuple(offset.arguments[0])}" if isinstance(offset, Call) and any(offset.arguments[0]) else ""
            yield where["offset"], f"{what['fqn']}{chunk}"


def _attributes(value: Call) -> dict[str, Any]:
    """Return the attributes of an object of a data class."""
    state = value.state[0] if isinstance(value.state, tuple) else value.state
    return {key: one for key, one in state.pairs if not isinstance(one, Global)}
