"""One run of a plan on this machine, and the job of an engine."""

import dataclasses
import hashlib
import io
import os
import secrets
import shutil
import signal
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec.structs import replace

from detaudit import __version__, private, wire
from detaudit.config.flags import Flag
from detaudit.config.recipes import Recipe
from detaudit.errors import ConfigError, DetauditError, StorageError, WorkspaceError
from detaudit.launch import Launcher, refusals
from detaudit.launch.local import LocalLauncher
from detaudit.launch.plan import Settings, plan_group
from detaudit.launch.processes import Reaper
from detaudit.launch.target import resolve_target
from detaudit.model import Run
from detaudit.model.fact import now
from detaudit.model.stage import Records
from detaudit.remote import plan as state
from detaudit.remote.archive import Attempt, logs_of, name_of, pack, read_attempt
from detaudit.remote.engine import Job, Lost, Refused
from detaudit.remote.plan import SCHEMA_VERSION, Plan, other_sources, read_plan
from detaudit.remote.storage import Storage
from detaudit.runner import Limits, Observer, Runner
from detaudit.runs import environment, log

# Do one run of a plan on this machine, and store what it left.


SCRATCH = Path("/tmp")  # noqa: S108 - the folder in it is for this user alone
"""Where workers write until a run is stored: equal on all machines, because the length of a path moves addresses."""

_SHOWN = 5


@dataclass(frozen=True)
class Asked:
    """What is asked of one run besides its plan: see Job."""

    limits: Limits
    watch: str = ""
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True)
class Worker:
    """Does runs of a plan in ``cwd``, whose processes have the ``mark``.

    ``python`` runs the training if the user names one, also against the plan. Until a run is stored, what it writes is
    in a folder below ``scratch``.
    """

    plan: Plan
    cwd: Path
    launcher: Launcher
    observer: Observer
    mark: str
    python: str | None = None
    scratch: Path = SCRATCH

    def archive(self, number: int, attempt_id: str, into: Path, asked: Asked | None = None) -> list[Path]:
        """Do the run with this number, and write its archive to a file, however the training ended.

        It is ended where the plan says, or where is ``asked``. Return what is to be stored; see packed.

        Raises UsageError for no run of the plan, ConfigError if the code or detaudit is another than the plan's,
        StorageError if nothing can be written.
        """
        recipe, position = self.plan.recipe_and_number(number)
        self._refuse_others()
        state.reset_process()
        started = now()
        with self._folder() as folder:
            settings = self._settings(recipe, folder)
            asked = asked or Asked(Limits(until=settings.until))
            flags = {flag.id: flag for flag in (*asked.flags, *recipe.flags)}
            refused = refusals.refused(flags.values(), settings.target, settings.outer or {})
            runner = Runner(dataclasses.replace(settings, until=None), self.launcher, self.observer)
            spec = plan_group(settings, recipe, runner.space, refused).spec(position)
            watched = {wire.ENV_WATCH: asked.watch} if asked.watch else {}
            result = runner.run(position, dataclasses.replace(spec, env={**spec.env, **watched}), asked.limits)
            attempt = Attempt(
                schema_version=SCHEMA_VERSION,
                plan=self.plan,
                run=number,
                id=attempt_id,
                cwd=str(spec.cwd),
                place=str(folder),
                machine=_machine(settings.outer or {}),
                result=replace(result.run, log_dir=""),
                unhooked=result.record.unhooked,
                threads=result.threads,
                refused=refused,
                started=started,
                ended=now(),
            )
            try:
                private.make_folder(spec.folder)
                return packed(attempt, spec.folder, into)
            except OSError as error:
                raise StorageError.of(f"write {into}", error, "another --scratch") from error

    def _refuse_others(self) -> None:
        if self.plan.detaudit != __version__:
            message = f"the plan is of detaudit {self.plan.detaudit}, and this is {__version__}"
            raise ConfigError(message, "Install the same version on all machines.")
        if others := other_sources(self.plan, self.cwd):
            shown = ", ".join(others[:_SHOWN]) + (f", and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
            message = f"the code in {self.cwd} is not that of the plan: {shown}"
            raise ConfigError(message, "Check out the same commit there, or plan again with this code.")

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        try:
            folder = Path(tempfile.mkdtemp(prefix="detaudit-", dir=self.scratch))
        except OSError as error:
            raise StorageError.of(f"write to {self.scratch}", error, "another --scratch") from error
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _settings(self, recipe: Recipe, folder: Path) -> Settings:
        plan = self.plan
        target = resolve_target(
            (plan.script,) if plan.script else (), plan.arguments, plan.module, self.python or plan.python or None
        )
        usual = plan.settings(target, folder, self.cwd)
        return dataclasses.replace(usual, recipes=(recipe,), mark=self.mark, outer=state.variables(plan))


def packed(attempt: Attempt, folder: Path, into: Path) -> list[Path]:
    """Write the archive of an attempt whose files are in a folder, and return what is to be stored, in this order.

    If its plan wants trees, their event logs are in a file beside it. Raises OSError or StorageError.
    """
    if attempt.plan.records is Records.TREES:
        log.fold_run(folder)
    logs = into.with_name(logs_of(attempt))
    pack(attempt, folder, into, lambda path: not log.is_folded(path))
    if not any(map(log.is_folded, folder.rglob("*"))):
        return [into]
    pack(attempt, folder, logs, log.is_folded)
    return [logs, into]


@dataclass(frozen=True)
class Stored:
    """What became of a run: how it ended, None if another attempt at it was stored before, and its archive's name."""

    name: str
    run: Run | None


def store(worker: Worker, number: int, storage: Storage) -> Stored:
    """Do a run and store it, unless it is stored already. An archive that cannot be stored is kept here.

    Event logs that are apart are stored first: whoever sees a run can fetch them.

    Raises what Worker.archive does, and StorageError if the storage fails.
    """
    name = name_of(worker.plan, number)
    if name in storage.names():
        return Stored(name, None)
    folder = Path(tempfile.mkdtemp(prefix="detaudit-", dir=worker.scratch))
    kept = False
    try:
        archives = worker.archive(number, secrets.token_hex(8), folder / name)
        try:
            new = [storage.put_new(archive.name, archive) for archive in archives][-1]
        except DetauditError as error:
            kept = True
            shown = ", then ".join(map(str, archives))
            hint = f"The run is kept in {shown}: copy it to {storage.url} once that works."
            raise type(error)(error.message, " ".join(filter(None, [error.hint, hint]))) from error
        return Stored(name, read_attempt(archives[-1]).result if new else None)
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


def _machine(variables: Mapping[str, str]) -> dict[str, Any]:
    """Describe this machine, and the variables that all runs have."""
    description = {
        **environment.describe(variables),
        **environment.describe_machine(base=variables),
        "id": environment.identity(),
    }
    return {**description, "may_have_gpu": environment.has_gpu()}


# Do a job on the machine that an engine brought it to: `python -m detaudit.remote.worker`, or a call of ``carry_out``.
#
# As a program it reads one frame from stdin, a job, and writes one to stdout: the archive of the run, or why the job is
# refused. stdin stays open as long as the result is wanted.


MARKER = b"\ndetaudit frame "
"""What a frame begins with: before it may be what a login shell prints. The size and the SHA-256 follow."""

_ARCHIVE, _NONE = b"A", b"N"
"""The first byte of a result: an archive follows, or why there is none."""


_JOB = msgspec.msgpack.Decoder(Job)
_ANSWER: msgspec.msgpack.Decoder[Lost | Refused] = msgspec.msgpack.Decoder(Lost | Refused)


def carry_out(data: bytes) -> bytes:
    """Do an encoded job on this machine, and return the result as in a frame. Nothing of it is left here.

    Engines that call functions call this one. An interruption (KeyboardInterrupt) ends the run.
    """
    job = _JOB.decode(data)
    mark = secrets.token_hex(4)
    with Reaper(mark), tempfile.TemporaryDirectory(prefix="detaudit-", dir=SCRATCH) as directory:
        results = Path(directory, "results")
        results.mkdir()
        try:
            cwd = _unpack(job, Path(directory))
            before = os.getcwd()
            os.chdir(cwd)
            try:
                plan = read_plan(job.plan, "the plan of the job")
                worker = Worker(plan, cwd, LocalLauncher(), Observer(), mark, job.python or None, Path(directory))
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
        return _ANSWER.decode(data[1:])
    except msgspec.MsgspecError:
        return Lost("the result cannot be read")


def _unpack(job: Job, path: Path) -> Path:
    """Unpack the code of a job, and return the working directory in it."""
    if hashlib.sha256(job.code).hexdigest() != job.digest:
        raise ConfigError("the code of the job is not what was sent", "Try again.")
    with tarfile.open(fileobj=io.BytesIO(job.code), mode="r:gz") as tar:
        tar.extractall(path / "work", filter="data")
    cwd = path / "work" / job.cwd
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
        reply = carry_out(data)
    except KeyboardInterrupt:
        return 130
    out.write(frame(reply))
    out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
