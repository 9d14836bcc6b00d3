"""Read what is in archives and compressed files, each member as a file of its own format.

Names and contents of members count; their times, owners and modes are left out, and so is their order. Nothing is ever
written under the name of a member, but into one temporary file at a time.
"""

import bz2
import contextlib
import gzip
import importlib
import lzma
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from detaudit.runs import formats
from detaudit.runs.formats import BROKEN, PIECE, Part, UnusableError, check_unpacked, unique
from detaudit.runs.formats import values as single

MOST_DEPTH = 3
"""Archives and compressed files that may be in each other; a compressed tar is two."""


@dataclass
class _Archive:
    """An archive that is being read: the size of the file that it lies in at last, and what that unpacked to."""

    size: int
    depth: int = 1
    unpacked: int = 0


_members: dict[Path, _Archive] = {}
"""The archives that the temporary files belong to which are being read."""


def is_zip(head: bytes, path: Path) -> bool:
    """Return whether this is a zip: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, section 4.3."""
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def is_gzip(head: bytes, path: Path) -> bool:
    """Return whether this is compressed by gzip: RFC 1952, section 2.3.1."""
    return head.startswith(b"\x1f\x8b\x08")


def is_bz2(head: bytes, path: Path) -> bool:
    """Return whether this is compressed by bzip2, whose mark is followed by a digit."""
    return head.startswith(b"BZh") and head[3:4] in tuple(b"%d" % digit for digit in range(1, 10))


def is_xz(head: bytes, path: Path) -> bool:
    """Return whether this is compressed by xz: https://tukaani.org/xz/xz-file-format.txt, section 2.1.1.1."""
    return head.startswith(b"\xfd7zXZ\0")


def is_zstd(head: bytes, path: Path) -> bool:
    """Return whether this is compressed by Zstandard: RFC 8878, section 3.1.1."""
    return head.startswith(b"\x28\xb5\x2f\xfd")


def is_tar(head: bytes, path: Path) -> bool:
    """Return whether this begins with the header of a member, which has a checksum."""
    try:
        tarfile.TarInfo.frombuf(head[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


def gzip_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return _compressed(path, lambda: gzip.open(path))


def bz2_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return _compressed(path, lambda: bz2.open(path))


def xz_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return _compressed(path, lambda: lzma.open(path))


def zstd_parts(path: Path) -> Iterator[Part]:
    """See Format.parts. Python has a reader from version 3.14 on, others need the package zstandard."""
    try:
        opener: Callable[..., Any] = importlib.import_module("compression.zstd").open
    except ModuleNotFoundError:
        opener = importlib.import_module("zstandard").open
    return _compressed(path, lambda: opener(path, "rb"))


def _compressed(path: Path, opener: Callable[[], Any]) -> Iterator[Part]:
    with _reading(path) as archive, opener() as file:
        yield from _member(file, archive)


def zip_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return unique(members(path, {}))


def members(path: Path, names: Mapping[str, str | None]) -> Iterator[Part]:
    """Yield the parts of the members of a zip, those with a name in ``names`` below that, or if it is None not."""
    with _reading(path) as archive, formats.unzipped(path) as packed:
        for member in sorted(packed.infolist(), key=lambda member: member.filename):
            name = names.get(member.filename, member.filename)
            if name is not None and not member.is_dir():
                with packed.open(member) as file:
                    yield from _below(name, _member(file, archive))


def tar_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return unique(_tar_parts(path))


def _tar_parts(path: Path) -> Iterator[Part]:
    try:
        with _reading(path) as archive, tarfile.open(path, "r:") as packed:
            for member in packed:
                file = packed.extractfile(member) if member.isreg() else None
                if file is not None:
                    with file:
                        yield from _below(member.name, _member(file, archive))
                elif not member.isdir():
                    yield single.literal(single.printable(member.name), f"link to {member.linkname}")
    except tarfile.TarError as error:
        raise ValueError(str(error)) from error


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[_Archive]:
    outer = _members.get(path)
    if outer is None:
        yield _Archive(path.stat().st_size)
    elif outer.depth >= MOST_DEPTH:
        raise UnusableError(f"more than {MOST_DEPTH} archives in each other are not read")
    else:
        inner = replace(outer, depth=outer.depth + 1)
        yield inner
        outer.unpacked = inner.unpacked


def _member(file: IO[bytes] | Any, archive: _Archive) -> Iterator[Part]:
    """Yield the parts of what is to be read from ``file``."""
    with tempfile.NamedTemporaryFile(prefix="detaudit-") as copy:
        while piece := file.read(PIECE):
            archive.unpacked += len(piece)
            check_unpacked(archive.unpacked, archive.size)
            copy.write(piece)
        copy.flush()
        path = Path(copy.name)
        _members[path] = archive
        try:
            yield from _parts(path)
        finally:
            del _members[path]


def _parts(path: Path) -> Iterator[Part]:
    file_format = formats.format_of(path)
    if file_format is not None and file_format.guess and not _is_readable(file_format, path):
        file_format = formats.PLAIN
    return file_format.parts(path) if file_format is not None else formats.whole_file(path)


def _is_readable(file_format: formats.Format, path: Path) -> bool:
    """Return whether a text is to its end what it seems to be."""
    try:
        for part in file_format.parts(path):
            for _ in part.pieces:
                pass
    except BROKEN:
        return False
    return True


def _below(member: str, parts: Iterator[Part]) -> Iterator[Part]:
    member = single.printable(member)
    for part in parts:
        yield replace(part, name=f"{member}: {part.name}" if part.name else member)
