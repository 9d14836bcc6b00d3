"""A runner whose runs an engine carries, on machines of one kind."""

import contextlib
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from detaudit import private, store, wire
from detaudit.config.flags import Flag
from detaudit.config.options import Until
from detaudit.errors import EngineError, StorageError
from detaudit.judge.conditions import RunMachine
from detaudit.launch import Launcher, RunOutcome, RunSpec
from detaudit.launch.local import TICK_S
from detaudit.launch.plan import Settings
from detaudit.launch.workspace import SharedWorkspace
from detaudit.model import FlagState, Run, RunRecord, Status
from detaudit.model.problems import RunLost
from detaudit.remote.archive import ArchiveError, Attempt, unpack
from detaudit.remote.engine import Engine, Job, Lost, Refused, Returned
from detaudit.remote.join import Reader
from detaudit.remote.plan import Plan, Snapshot, planned, to_file
from detaudit.runner import Limits, Observer, Result, Runner
from detaudit.runs import environment

# Keep the runs of a search on machines of one kind: two runs on different kinds may differ because of that.


_DECODER = msgspec.json.Decoder(RunMachine)

FILE = "place.json"
"""Where a run was done, in its folder: for a search that is resumed."""


class SameMachine:
    """The kind of the machine that did the first run, and ``where`` that is, as the user calls it.

    ``refused`` are the flags that it does not support.
    """

    def __init__(self) -> None:
        self.where = ""
        self.refused: Mapping[str, FlagState] = {}
        self._first: RunMachine | None = None

    def differing(self, machine: RunMachine) -> list[str]:
        """Return the names of what makes another kind of a machine, ``[]`` if it is of this kind."""
        return differing(self._first, machine) if self._first is not None else []

    def take(self, machine: RunMachine, where: str, folder: Path) -> RunMachine:
        """Note that a run was done on a machine of this kind, keep that in its folder, and return it as one of them."""
        if self._first is None:
            self._keep(machine, where)
        else:
            machine = replace(machine, relevant=self._first.relevant)  # one that was ended early imported less
        store.write(folder / FILE, msgspec.json.encode(machine))
        return machine

    def restored(self, folder: Path) -> RunMachine | None:
        """Return where a run was done by an earlier process, None if that is not known."""
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            machine = _DECODER.decode((folder / FILE).read_bytes())
            if self._first is None:
                self._keep(machine, "")
            return machine
        return None

    def _keep(self, machine: RunMachine, where: str) -> None:
        self._first, self.where, self.refused = machine, where or machine.host, machine.refused


def differing(a: RunMachine, b: RunMachine) -> list[str]:
    """Return the names of what may change bits and differs between two machines, ``[]`` if they are alike.

    A run that was ended early does not say all that it imported: what only one run knows of packages is left out.
    """
    if a.id == b.id:
        return []
    bare = [environment.relevant_of_machine(machine.described) for machine in (a, b)]
    names = {*bare[0], *bare[1], *(a.relevant.keys() & b.relevant.keys())}
    return sorted(name for name in names if a.relevant.get(name) != b.relevant.get(name))


# Start the runs of an audit on other machines: what Runner does here, an engine and a worker do there.


ATTEMPTS = 3
"""How often a run is begun if machines are lost."""

_SHOWN = 5


class EngineLauncher:
    """A Launcher that gives the jobs of runs to an engine. It may be called in several threads at once.

    What came back of a run is in ``spec.folder`` afterwards, and in ``attempts`` by that folder, with the name of the
    machine.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine, self._lock = engine, threading.Lock()
        self._returned: dict[str, Returned] = {}
        self.attempts: dict[Path, tuple[Attempt, str]] = {}

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        """See Launcher.launch; the outcome of a run that was lost on each machine has no exit code.

        Raises EngineError if the engine is broken, or a machine cannot do the run at all.
        """
        job, started, lost = spec.job, time.monotonic(), ""
        if not isinstance(job, Job):
            raise TypeError("a run elsewhere needs a job")
        avoid = self._engine.places - {job.place} if job.place else frozenset[str]()
        for _ in range(ATTEMPTS):
            returned = self._carried(job, avoid, tick)
            prefix = f"{returned.where}: " if returned.where else ""
            if isinstance(returned.result, Refused):
                raise EngineError(f"{prefix}{returned.result.message}", returned.result.hint)
            if isinstance(returned.result, Lost):
                lost = f"{prefix}{returned.result.reason}"
            elif (attempt := self._unpacked(job, returned.result, spec.folder)) is not None:
                self.attempts[spec.folder] = attempt, returned.where
                return RunOutcome(attempt.result.exit_code, time.monotonic() - started)
            else:
                lost = f"{prefix}the archive of the run is not whole"
            avoid = (frozenset() if job.place else avoid) | {returned.where}
            job = msgspec.structs.replace(job, id=secrets.token_hex(8), place="")
        raise RunLostError(lost)

    def _carried(self, job: Job, avoid: frozenset[str], tick: Callable[[], None]) -> Returned:
        with self._lock:
            self._engine.submit(job, avoid)
        try:
            while True:
                with self._lock:
                    self._returned |= {one.job: one for one in self._engine.poll()}
                    if job.id in self._returned:
                        return self._returned.pop(job.id)
                    if why := self._engine.failure():
                        raise EngineError(f"the engine failed: {why}", "Start the audit again.")
                tick()
                time.sleep(TICK_S)
        except BaseException:
            with self._lock:
                self._engine.cancel(job.id)
            raise

    def _unpacked(self, job: Job, data: bytes, folder: Path) -> Attempt | None:
        """Write what came of a job to a folder; return None if it is not the whole result of this very job."""
        archive, unpacked_folder = folder.with_name(f"{folder.name}.archive"), folder.with_name(f"{folder.name}.taken")
        try:
            private.make_folder(folder.parent)
            archive.write_bytes(data)
            attempt = unpack(archive, unpacked_folder)
        except ArchiveError:
            return None
        except OSError as error:
            raise StorageError.of(f"write {archive}", error) from error
        finally:
            archive.unlink(missing_ok=True)
        if (attempt.id, attempt.run) != (job.id, job.run):
            shutil.rmtree(unpacked_folder, ignore_errors=True)
            return None
        unpacked_folder.rename(folder)
        return attempt


class RunLostError(Exception):
    """A run was lost on each machine that began it; the text says why the last time."""


@dataclass(frozen=True)
class RemoteRuns:
    """Makes runners of audits whose runs are done by the engine of ``carrier``; see MakeRunner.

    ``spread`` are the machines to which the runs of a recipe go in turn, ``()`` if any does any. With ``alike``, all
    runs stay on the machine of the first, and on those like it; each machine says which of the flags ``asked`` it does
    not support.
    """

    carrier: EngineLauncher
    plan: Plan
    code: Snapshot
    python: str = ""
    spread: tuple[str, ...] = ()
    alike: bool = False
    asked: tuple[Flag, ...] = ()

    def __call__(self, settings: Settings, launcher: Launcher, observer: Observer) -> Runner:
        """Return a runner; ``launcher`` passes jobs on to the carrier."""
        return RemoteRunner(settings, launcher, observer, self)


class RemoteRunner(Runner):
    """Starts each run on another machine, in a fresh copy of the code, with nothing of this machine's environment."""

    def __init__(self, settings: Settings, launcher: Launcher, observer: Observer, remote_runs: RemoteRuns) -> None:
        super().__init__(replace(settings, isolate=True), launcher, observer)  # nothing here is watched
        self.space = SharedWorkspace(settings.cwd)
        self._elsewhere, self._reader = remote_runs, Reader(settings.out)
        self._kept = SameMachine() if remote_runs.alike else None

    def refused(self, flags: Iterable[Flag]) -> Mapping[str, FlagState]:
        """Return what the one kind of machine said; if there may be several, each says so itself."""
        known = self._kept.refused if self._kept is not None else {}
        return {flag.id: known[flag.id] for flag in flags if flag.id in known}

    def machine(self, spec: RunSpec) -> RunMachine | None:
        """See Runner."""
        return self._kept.restored(spec.folder) if self._kept is not None else None

    def _run(self, number: int, spec: RunSpec, limits: Limits, *, carry_on: bool) -> Result:
        """See Runner. A run is not compared while it goes on, so it is ended where it would be if it matched."""
        remote_runs, job = self._elsewhere, self._job(number, spec, limits)
        try:
            self._launcher.launch(replace(spec, job=job), lambda: None)
        except RunLostError as error:
            if self._kept is not None:  # a search would take it for a training that fails
                hint = "Start it again; a bisection goes on with --resume."
                raise EngineError(f"a run was lost {ATTEMPTS} times: {error}", hint) from error
            return Result(_lost(number, str(error)), (), RunRecord())
        attempt, where = remote_runs.carrier.attempts.pop(spec.folder)
        taken = spec.folder.with_name(f"{spec.folder.name}.taken")
        spec.folder.rename(taken)
        with self._reading:
            result = self._reader.result(spec, attempt, taken)
        if self._kept is None or result.machine is None:
            return result
        if others := self._kept.differing(result.machine):
            shutil.rmtree(spec.folder)
            raise _other_kind(where or result.machine.host, self._kept.where, others)
        if not self._kept.where:
            self._observer.stays_on(where or result.machine.host)
        return replace(result, machine=self._kept.take(result.machine, where, spec.folder))

    def _job(self, number: int, spec: RunSpec, limits: Limits) -> Job:
        remote_runs, until = self._elsewhere, spec.env.get(wire.ENV_UNTIL)
        ended = replace(self._settings, until=Until(step=int(until)) if until else None, isolate=False)
        plan = msgspec.structs.replace(
            remote_runs.plan,
            recipes=(spec.recipe,),
            runs=max(number, remote_runs.plan.runs),
            options=planned(ended),
        )
        kept = self._kept.where if self._kept is not None else ""
        return Job(
            id=secrets.token_hex(8),
            run=number,
            plan=to_file(plan),
            code=remote_runs.code.data,
            digest=remote_runs.code.digest,
            cwd=remote_runs.code.cwd,
            python=remote_runs.python,
            place=remote_runs.spread[(number - 1) % len(remote_runs.spread)] if remote_runs.spread else kept,
            until=limits.until,
            last_step=limits.last_step,
            trained_by=limits.trained_by,
            watch=spec.env.get(wire.ENV_WATCH, ""),
            asked=remote_runs.asked,
        )


def _other_kind(where: str, first: str, names: Sequence[str]) -> EngineError:
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    hint = "Name machines of one kind with --engine; a bisection goes on with --resume."
    return EngineError(f"{where} did a run, and is not like {first}, which did the first one: {shown}", hint)


def _lost(number: int, why: str) -> Run:
    errors = (RunLost(attempts=ATTEMPTS, reason=why),)
    return Run(id=number, status=Status.FAILED, exit_code=None, wall_s=0.0, steps=0, errors=errors)
