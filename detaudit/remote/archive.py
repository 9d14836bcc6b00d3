"""The archive that a worker leaves: what one run recorded, with a checksum that shows whether all of it is there.

A first line of ``LINE`` bytes has the digest and the size of the rest, a compressed tar: first ``ATTEMPT``, then the
files of the run, whose sizes and digests that names.
"""

import contextlib
import gzip
import hashlib
import io
import re
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import msgspec

from detaudit.model import FlagState, Run, Training
from detaudit.model.fact import encode
from detaudit.model.stage import ArchiveFlaw
from detaudit.remote.plan import SCHEMA_VERSION, Plan

SUFFIX = ".detaudit"
LOGS_SUFFIX = ".logs"
ATTEMPT = "attempt.json"
MOST_BYTES = 32 * 2**30
"""Bytes of a run that an archive may unpack to."""

_MAGIC = b"detaudit run 1"
LINE = len(_MAGIC) + 1 + 64 + 1 + 16 + 1
_CHUNK = 2**20
_MOST_FACTS = 2**28
"""Bytes of ATTEMPT."""


class ArchiveError(Exception):
    """An archive does not count; ``flaw`` says why."""

    def __init__(self, flaw: ArchiveFlaw) -> None:
        super().__init__(flaw)
        self.flaw = flaw


class FileDigest(msgspec.Struct, frozen=True):
    """A file in an archive: its size in bytes, and its SHA-256."""

    size: int
    sha256: str


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a plan on one machine.

    ``id`` is another one each time: a copy has the same, a repetition has not. ``run`` is its number in the plan,
    ``cwd`` where it worked, ``place`` where its results were, and ``machine`` what affects determinism there.
    ``result`` is what the run showed, ``unhooked`` what of it needs no event log, ``threads`` how many it used,
    ``refused`` the flags that its system does not support. ``started`` and ``ended`` are in UTC.
    """

    schema_version: str
    plan: Plan
    run: int
    id: str
    cwd: str
    place: str
    machine: dict[str, Any]
    result: Run
    started: str
    ended: str
    threads: int = 0
    unhooked: tuple[Training, ...] = ()
    refused: dict[str, FlagState] = {}
    files: dict[str, FileDigest] = {}


def name_of(plan: Plan, run: int) -> str:
    """Return the name of the archive of a run: there is one for each, whichever attempt was first."""
    return f"{plan.id}-{run:06d}{SUFFIX}"


def logs_of(attempt: Attempt) -> str:
    """Return the name of the archive of event logs that the trees of an attempt belong to; see Plan.records.

    Another attempt may have stored its own before it was lost, so each has its own name.
    """
    return f"{attempt.plan.id}-{attempt.run:06d}-{attempt.id}{LOGS_SUFFIX}"


def pack(attempt: Attempt, folder: Path, into: Path, include: Callable[[Path], bool] = lambda _: True) -> None:
    """Write the files of a run that ``include`` accepts, and what is known of it, to one archive. Raises OSError."""
    regular_files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    paths = sorted(filter(include, regular_files))
    files = {str(path.relative_to(folder)): path for path in paths}
    attempt = msgspec.structs.replace(attempt, files={name: _digest(path) for name, path in files.items()})
    with into.open("w+b") as file:
        file.write(bytes(LINE))
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as tar:
            _add(tar, ATTEMPT, encode(attempt))
            for name, path in files.items():
                tar.add(path, f"files/{name}", recursive=False, filter=_plain)
        size = file.tell() - LINE
        file.seek(LINE)
        digest = _hash(file)
        file.seek(0)
        file.write(b"%s %s %016d\n" % (_MAGIC, digest.encode(), size))


def unpack(archive: Path, into: Path) -> Attempt:
    """Check an archive, and write the files of its run to the folder ``into``, which does not exist yet.

    Raises ArchiveError if it is not whole, was changed, or comes from another version, and OSError if a file cannot be
    read or written; then nothing is left.
    """
    try:
        with archive.open("rb") as file:
            _check(file)
            file.seek(LINE)
            with tarfile.open(fileobj=file, mode="r|gz") as tar:
                return _unpack(tar, into)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ArchiveError(ArchiveFlaw.UNREADABLE) from error


def read_attempt(archive: Path) -> Attempt:
    """Return what an archive says of its run, without its files. Raises as unpack does."""
    try:
        with archive.open("rb") as file:
            _check(file)
            file.seek(LINE)
            with tarfile.open(fileobj=file, mode="r|gz") as tar:
                return _first(iter(tar), tar)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ArchiveError(ArchiveFlaw.UNREADABLE) from error


def _check(file: BinaryIO) -> None:
    """Raise ArchiveError unless the rest of a file is what its first line says."""
    line = file.read(LINE)
    if not line.startswith(_MAGIC[: len(line)]) or not line:
        raise ArchiveError(ArchiveFlaw.NO_ARCHIVE)
    if len(line) < LINE:
        raise ArchiveError(ArchiveFlaw.CUT)
    match = re.fullmatch(rb"%s ([0-9a-f]{64}) ([0-9]{16})\n" % _MAGIC, line)
    here = file.seek(0, io.SEEK_END) - LINE
    if match is None or here > int(match[2]):
        raise ArchiveError(ArchiveFlaw.CHANGED)
    if here < int(match[2]):
        raise ArchiveError(ArchiveFlaw.CUT)
    file.seek(LINE)
    if _hash(file) != match[1].decode():
        raise ArchiveError(ArchiveFlaw.CHANGED)


def _first(members: Iterator[tarfile.TarInfo], tar: tarfile.TarFile) -> Attempt:
    first = next(members, None)
    data = tar.extractfile(first) if first is not None and first.name == ATTEMPT else None
    if first is None or data is None or first.size > _MOST_FACTS:
        raise ArchiveError(ArchiveFlaw.NO_ARCHIVE)
    return _attempt(data.read())


def _unpack(tar: tarfile.TarFile, into: Path) -> Attempt:
    members = iter(tar)
    attempt = _first(members, tar)
    if sum(entry.size for entry in attempt.files.values()) > MOST_BYTES:
        raise ArchiveError(ArchiveFlaw.UNREADABLE)
    missing = dict(attempt.files)
    into.mkdir(mode=0o700, parents=True)
    with _removed_on_error(into):
        for member in members:
            name = member.name.removeprefix("files/")
            expected = missing.pop(name, None)
            source = tar.extractfile(member) if member.isreg() else None
            if expected is None or source is None or expected.size != member.size or not _is_inside(name):
                raise ArchiveError(ArchiveFlaw.CHANGED)
            path = into / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with path.open("xb") as file:
                while chunk := source.read(_CHUNK):
                    file.write(chunk)
            if _digest(path) != expected:
                raise ArchiveError(ArchiveFlaw.CHANGED)
        if missing:
            raise ArchiveError(ArchiveFlaw.CUT)
    return attempt


@contextlib.contextmanager
def _removed_on_error(folder: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


_DECODER = msgspec.json.Decoder(Attempt)


def _attempt(data: bytes) -> Attempt:
    try:
        version = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get("schema_version")
        if version is None or msgspec.json.decode(version) != SCHEMA_VERSION:
            raise ArchiveError(ArchiveFlaw.OTHER_VERSION)
        return _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ArchiveError(ArchiveFlaw.OTHER_VERSION) from error


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), 0o600
    tar.addfile(member, io.BytesIO(data))


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out who owns a file: a worker may run as anybody."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts


def _digest(path: Path) -> FileDigest:
    with path.open("rb") as file:
        digest = _hash(file)
        return FileDigest(file.tell(), digest)


def _hash(file: BinaryIO) -> str:
    """Return the SHA-256 of the rest of a file."""
    hasher = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        hasher.update(chunk)
    return hasher.hexdigest()
