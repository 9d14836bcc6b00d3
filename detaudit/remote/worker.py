"""Do one run of a plan on this machine, and store what it left."""

import dataclasses
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from detaudit import __version__, private, wire
from detaudit.auditor.evidence import environment, folded, machine
from detaudit.auditor.runs.followed import Limits
from detaudit.auditor.runs.observer import Observer
from detaudit.auditor.runs.runner import Runner
from detaudit.errors import ConfigError, DetauditError, StorageError
from detaudit.launch import Launcher, refusals
from detaudit.launch.plan import Settings, plan_group
from detaudit.launch.target import resolve_target
from detaudit.model import Run
from detaudit.model.enums import Records
from detaudit.model.times import now
from detaudit.recipe.flags import Flag
from detaudit.recipe.recipes import Recipe
from detaudit.remote import state
from detaudit.remote.archive import Attempt, logs_of, name_of, pack, read_attempt
from detaudit.remote.plan import SCHEMA_VERSION, Plan, other_sources
from detaudit.remote.storage import Storage

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
        recipe, place = self.plan.place(number)
        self._refuse_others()
        state.reset_process()
        started = now()
        with self._folder() as folder:
            settings = self._settings(recipe, folder)
            asked = asked or Asked(Limits(until=settings.until))
            flags = {flag.id: flag for flag in (*asked.flags, *recipe.flags)}
            refused = refusals.refused(flags.values(), settings.target, settings.outer or {})
            runner = Runner(dataclasses.replace(settings, until=None), self.launcher, self.observer)
            spec = plan_group(settings, recipe, runner.space, refused).spec(place)
            watched = {wire.ENV_WATCH: asked.watch} if asked.watch else {}
            result = runner.run(place, dataclasses.replace(spec, env={**spec.env, **watched}), asked.limits)
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
        folded.fold_run(folder)
    logs = into.with_name(logs_of(attempt))
    pack(attempt, folder, into, lambda path: not folded.is_folded(path))
    if not any(map(folded.is_folded, folder.rglob("*"))):
        return [into]
    pack(attempt, folder, logs, folded.is_folded)
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
    found = {**environment.describe(variables), **machine.describe(base=variables), "id": machine.identity()}
    return {**found, "may_have_gpu": environment.has_gpu()}
