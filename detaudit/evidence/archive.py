"""The archive: a zip file with one layout for the same members, to the byte, and safe reading of any."""

import hashlib
import io
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from detaudit import private
from detaudit.errors import StorageError, UsageError

# Write members, stored as they are: compressed bytes would differ from one zlib to the next.


_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")
_END = struct.Struct("<4s4H2IH")

_UTF8, _STORED, _UNIX, _PLAIN, _LARGE = 0x800, 0, 3 << 8, 20, 45
_TIME, _DATE = 0, 1 << 5 | 1  # 1 January 1980
_MODE = (stat.S_IFREG | 0o644) << 16
_MOST16, _MOST32 = 2**16 - 1, 2**32 - 1
_PIECE = 2**20

Source = Path | bytes
"""The contents of a member: a file, or bytes."""


@dataclass(frozen=True)
class Member:
    """What is known of a member: its size in bytes, its SHA-256, and its checksum in the archive."""

    size: int
    sha256: str
    crc: int


def _open(source: Source) -> BinaryIO:
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def measured(source: Source) -> Member:
    """Return what is known of a member. Raises OSError."""
    digest, size, crc = hashlib.sha256(), 0, 0
    with _open(source) as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            size, crc = size + len(piece), zlib.crc32(piece, crc)
    return Member(size, digest.hexdigest(), crc)


def layout(sources: Mapping[str, Source], members: Mapping[str, Member]) -> Iterator[bytes]:
    """Yield the bytes of the archive: members in the order of their names, all of one time and mode."""
    offset, central = 0, b""
    for name in sorted(members):
        member, encoded = members[name], name.encode()
        large = member.size >= _MOST32
        extra = struct.pack("<2H2Q", 1, 16, member.size, member.size) if large else b""
        size, needed = (_MOST32, _LARGE) if large else (member.size, _PLAIN)
        entry = (_UTF8, _STORED, _TIME, _DATE, member.crc, size, size, len(encoded))
        header = _LOCAL.pack(b"PK\3\4", needed, *entry, len(extra)) + encoded + extra
        yield header
        with _open(sources[name]) as file:
            while piece := file.read(_PIECE):
                yield piece
        far = offset >= _MOST32
        sizes = [*((member.size, member.size) if large else ()), *((offset,) if far else ())]
        extra = struct.pack(f"<2H{len(sizes)}Q", 1, 8 * len(sizes), *sizes) if sizes else b""
        needed = _LARGE if sizes else _PLAIN
        at = _MOST32 if far else offset
        central += _CENTRAL.pack(b"PK\1\2", _UNIX | needed, needed, *entry, len(extra), 0, 0, 0, _MODE, at)
        central += encoded + extra
        offset += len(header) + member.size
    yield central
    count = len(members)
    if count >= _MOST16 or offset >= _MOST32 or len(central) >= _MOST32:
        end = offset + len(central)
        yield _END64.pack(b"PK\6\6", 44, _UNIX | _LARGE, _LARGE, 0, 0, count, count, len(central), offset)
        yield _LOCATOR.pack(b"PK\6\7", 0, end, 1)
    count, size, offset = min(count, _MOST16), min(len(central), _MOST32), min(offset, _MOST32)
    yield _END.pack(b"PK\5\6", 0, 0, count, count, size, offset, 0)


def write(path: Path, sources: Mapping[str, Source], members: Mapping[str, Member]) -> None:
    """Write an archive, or leave what is there untouched. Raises StorageError if that fails."""
    half = path.with_name(path.name + ".part")
    try:
        try:
            half.unlink(missing_ok=True)
            with open(half, "wb", opener=private.opener) as file:
                file.writelines(layout(sources, members))
            os.replace(half, path)
        finally:
            half.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError.of(f"write {path}", error, "another file") from error


def is_laid_out(path: Path, sources: Mapping[str, Source], members: Mapping[str, Member]) -> bool:
    """Whether a file is the archive of these members, to the byte."""
    with path.open("rb") as file:
        return all(file.read(len(piece)) == piece for piece in layout(sources, members)) and not file.read(1)


# Read an archive that may come from anybody.


MOST_MEMBERS = 1_000_000
SMALL = 2**30
"""Bytes that any archive may unpack to; a larger one to MOST_TIMES its own size."""
MOST_TIMES = 20


class NotAnArchiveError(UsageError):
    """A file is not an archive of evidence, or one that is not safe to unpack."""


def unpack(path: Path, folder: Path) -> tuple[dict[str, Member], list[str]]:
    """Unpack an archive to a new folder. Return its members, and the names of those that are damaged.

    Raises NotAnArchiveError for what is none, or not safe, StorageError if the members cannot be written.
    """
    hint = "Name a file that --evidence or `detaudit evidence` wrote."
    members: dict[str, Member] = {}
    damaged: list[str] = []
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(zipfile.ZipFile(path))
        except OSError as error:
            raise NotAnArchiveError(f"cannot read {path}: {error.strerror}", hint) from error
        except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, struct.error) as error:
            raise NotAnArchiveError(f"{path} is not a zip file, or its directory is damaged: {error}", hint) from error
        problem = _problem(opened.infolist(), path.stat().st_size)
        if problem:
            raise NotAnArchiveError(f"{path} was not written by detaudit: {problem}", hint)
        for info in opened.infolist():
            target = folder.joinpath(*PurePosixPath(info.filename).parts)
            if not _unpacked(opened, info, target):
                damaged.append(info.filename)
            members[info.filename] = measured(target)
    return members, damaged


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> bool:
    """Write a member to a new file; return whether it is whole. Raises StorageError if it cannot be written."""
    try:
        private.make_folder(target.parent)
        with open(target, "xb", opener=private.opener) as out:
            for piece in _pieces(archive, info):
                if piece is None:
                    return False
                out.write(piece)
    except OSError as error:
        raise StorageError.of(f"unpack {info.filename}", error, "another TMPDIR") from error
    return True


def _pieces(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes | None]:
    """Yield what a member holds, and None if it is damaged from there on."""
    try:
        with archive.open(info) as file:
            while piece := file.read(_PIECE):
                yield piece
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError):
        yield None


def _problem(infos: list[zipfile.ZipInfo], size: int) -> str:
    """Return why members are not to be unpacked, ``""`` if they may be."""
    if len(infos) > MOST_MEMBERS:
        return f"it has {len(infos)} members"
    if len({info.filename.casefold() for info in infos}) < len(infos):
        return "two members have one name"
    unpacked = sum(info.file_size for info in infos)
    if unpacked > max(SMALL, MOST_TIMES * size):
        return f"{size} bytes unpack to {unpacked}"
    unsafe = next((info.orig_filename for info in infos if not _is_safe(info)), None)
    if unsafe is not None:
        return f"the member {unsafe!r} is no plain file below the archive"
    names = {info.filename for info in infos}
    above = {str(parent) for name in names for parent in PurePosixPath(name).parents}
    return "a member is the folder of another" if names & above else ""


def _is_safe(info: zipfile.ZipInfo) -> bool:
    name, kind = info.orig_filename, stat.S_IFMT(info.external_attr >> 16)
    parts = name.split("/")
    plain = name == info.filename and name.isprintable() and not {*name} & {"\\", ":"} and len(name) < 4000
    inside = all(part not in ("", ".", "..") and len(part.encode()) <= 255 for part in parts)
    return plain and inside and kind in (0, stat.S_IFREG) and not info.flag_bits & 1
