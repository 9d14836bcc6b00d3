"""Do a job on the machine that an engine brought it to: `python -m detaudit.remote.job`, or a call of ``carry_out``.

As a program it reads one frame from stdin, a job, and writes one to stdout: the archive of the run, or why the job is
refused. stdin stays open as long as the result is wanted.
"""

import hashlib
import io
import os
import secrets
import signal
import sys
import tarfile
import tempfile
import threading
from pathlib import Path
from typing import BinaryIO

import msgspec

from detaudit.auditor.runs.followed import Limits
from detaudit.auditor.runs.observer import Observer
from detaudit.errors import ConfigError, DetauditError, StorageError, WorkspaceError
from detaudit.launch.local import LocalLauncher
from detaudit.launch.processes import Reaper
from detaudit.remote.engine import Job, Lost, Refused
from detaudit.remote.plan import read_plan
from detaudit.remote.worker import SCRATCH, Asked, Worker

MARKER = b"\ndetaudit frame "
"""What a frame begins with: before it may be what a login shell prints. The size and the SHA-256 follow."""

_ARCHIVE, _NONE = b"A", b"N"
"""The first byte of a result: an archive follows, or why there is none."""


def carry_out(data: bytes) -> bytes:
    """Do an encoded job on this machine, and return the result as in a frame. Nothing of it is left here.

    Engines that call functions call this one. An interruption (KeyboardInterrupt) ends the run.
    """
    job = msgspec.msgpack.decode(data, type=Job)
    mark = secrets.token_hex(4)
    with Reaper(mark), tempfile.TemporaryDirectory(prefix="detaudit-", dir=SCRATCH) as place:
        results = Path(place, "results")
        results.mkdir()
        try:
            cwd = _unpack(job, Path(place))
            before = os.getcwd()
            os.chdir(cwd)
            try:
                plan = read_plan(job.plan, "the plan of the job")
                worker = Worker(plan, cwd, LocalLauncher(), Observer(), mark, job.python or None, Path(place))
                worker.archive(job.run, job.id, results / "archive", _asked(job))
                return _ARCHIVE + (results / "archive").read_bytes()
            finally:
                os.chdir(before)
        except (StorageError, WorkspaceError) as error:  # another machine may have more room
            return _NONE + msgspec.msgpack.encode(Lost(error.message))
        except DetauditError as error:
            return _NONE + msgspec.msgpack.encode(Refused(error.message, error.hint))


def _asked(job: Job) -> Asked:
    limits = Limits(until=job.until, last_step=job.last_step, trained_by=job.trained_by)
    return Asked(limits, job.watch, job.asked)


def result_of(data: bytes) -> bytes | Lost | Refused:
    """Return the archive in a result, or why there is none."""
    if data[:1] == _ARCHIVE:
        return data[1:]
    try:
        return msgspec.msgpack.decode(data[1:], type=Lost | Refused)
    except msgspec.MsgspecError:
        return Lost("the result cannot be read")


def _unpack(job: Job, place: Path) -> Path:
    """Unpack the code of a job, and return the working directory in it."""
    if hashlib.sha256(job.code).hexdigest() != job.digest:
        raise ConfigError("the code of the job is not what was sent", "Try again.")
    with tarfile.open(fileobj=io.BytesIO(job.code), mode="r:gz") as tar:
        tar.extractall(place / "work", filter="data")
    cwd = place / "work" / job.cwd
    if not cwd.is_dir():
        raise ConfigError(f"the code of the job has no folder {job.cwd}", "Commit the folder, or put a file in it.")
    return cwd


def frame(data: bytes) -> bytes:
    """Return data with a marker, its size and its digest before it."""
    return b"%s%d %s\n" % (MARKER, len(data), hashlib.sha256(data).hexdigest().encode()) + data


def unframed(text: bytes) -> bytes | None:
    """Return the data of the only frame in what came, None if there is none, or it is not whole, or there are two."""
    _, marker, rest = text.partition(MARKER)
    line, newline, data = rest.partition(b"\n")
    size, _, digest = line.partition(b" ")
    if not marker or not newline or not size.isdigit() or len(data) != int(size):
        return None
    return data if hashlib.sha256(data).hexdigest().encode() == digest else None


def _read(stdin: BinaryIO) -> bytes | None:
    line = stdin.readline()
    while line and not line.startswith(MARKER.strip()):
        line = stdin.readline()
    size = line[len(MARKER.strip()) :].split()[:1]
    return unframed(b"\n" + line + stdin.read(int(size[0]))) if size and size[0].isdigit() else None


def _end_with_stdin(stdin: BinaryIO) -> None:
    """End this process when nobody wants the result any more: the connection was cut, or the auditor is gone."""
    while stdin.read(4096):
        continue
    os.kill(os.getpid(), signal.SIGTERM)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """Do the job on stdin. The exit status is 0 if a frame was written."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything else prints is not part of the frame
    stdin = os.fdopen(os.dup(0), "rb", closefd=False)
    data = _read(stdin)
    if data is None:
        return 2
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=_end_with_stdin, args=(stdin,), daemon=True).start()
    try:
        found = carry_out(data)
    except KeyboardInterrupt:
        return 130
    out.write(frame(found))
    out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
