"""Read what torch.save writes, tensor by tensor; see formats/torch.py for the layout.

Only the elements that a tensor shows are read: the rest of its storage may be memory that was never written.
"""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from detaudit.auditor.evidence.formats import Part, extents, pickles, pieces, torch, unzipped
from detaudit.auditor.evidence.formats.arrays import held
from detaudit.auditor.evidence.formats.standins import Persistent
from detaudit.auditor.evidence.formats.storages import layout_of, span

_LOCAL_HEADER = 30
"""Bytes before the name in the header of a member of a zip: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT."""


def parts(path: Path) -> Iterator[Part] | None:
    """Return the parts as Reader.parts does, None if neither torch nor pickle wrote the file."""
    with path.open("rb") as file:
        start = file.read(2)
    if start == b"PK":
        return _of_zip(path) if torch.root_of(path) is not None else None
    if start[:1] == b"\x80":
        torch.check_format(path)
        return pickles.parts(path)
    return None


def _of_zip(path: Path) -> Iterator[Part]:
    root = torch.root_of(path) or ""
    with unzipped(path) as archive, path.open("rb") as raw:
        if archive.getinfo(f"{root}data.pkl").file_size > torch.MOST_STRUCTURE:
            raise ValueError("its data.pkl is too large")
        big = torch.is_big(archive, root)
        with archive.open(f"{root}data.pkl") as structure:
            found = pickles.read(structure)

        def tensor(name: str, arguments: Any) -> Part | None:
            storage, offset, shape, strides = arguments[:4]
            if (
                not isinstance(storage, Persistent)
                or storage.key[0] != "storage"
                or not isinstance(storage.key[2], str)
            ):
                return None
            shape, strides, (offset,) = extents(shape), extents(strides), extents((offset,))
            member = archive.getinfo(f"{root}data/{storage.key[2]}")
            kind = torch.dtype_of(storage.key[1].name)
            if kind is None:  # elements of an unknown size
                return Part(name, _bytes(archive, raw, member, 0, member.file_size), storage.key[1].name, shape)
            item = member.file_size // max(storage.key[4], 1)
            start, size = span(offset, shape, strides, item, member.file_size)
            dtype = f"{'<>'[big]}{kind}{layout_of(shape, strides)}"
            return Part(name, _bytes(archive, raw, member, start, size), dtype, shape)

        yield from held(found, tensor)


def _bytes(archive: zipfile.ZipFile, raw: IO[bytes], member: zipfile.ZipInfo, start: int, size: int) -> Iterator[bytes]:
    if member.compress_type != zipfile.ZIP_STORED:
        with archive.open(member) as file:
            file.seek(start)
            yield from pieces(file, size)
        return
    raw.seek(member.header_offset)
    header = raw.read(_LOCAL_HEADER)
    names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    raw.seek(member.header_offset + _LOCAL_HEADER + names + start)
    yield from pieces(raw, size)
