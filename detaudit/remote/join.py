"""Archives gathered, fetched, and judged as if their runs had been done here."""

import copy
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path

import msgspec

from detaudit import __version__, private, redact, store, wire
from detaudit.audit import AuditInProgress
from detaudit.config.options import read
from detaudit.errors import AuditNotFoundError, StorageError, UsageError
from detaudit.judge.conditions import RunMachine
from detaudit.launch import RunSpec
from detaudit.launch.plan import Settings, plan_group
from detaudit.launch.target import Target
from detaudit.launch.workspace import SharedWorkspace
from detaudit.model import Across, Audit, Warning
from detaudit.model.stage import ArchiveFlaw
from detaudit.model.warnings import ArchiveFlawed, ArchivesOfOtherPlans, LeftoversUnchecked, RunStoredTwice
from detaudit.remote.archive import SUFFIX, ArchiveError, Attempt, logs_of, name_of, unpack
from detaudit.remote.plan import Plan, other_sources
from detaudit.remote.storage import Storage
from detaudit.runner import Result
from detaudit.runs import environment, files, log, log_rows
from detaudit.runs.status import compared, cut

# Take the archives of a plan's runs from where workers store them: each run once, and nothing that is not whole.


POLL_S = 2.0

_SHOWN = 5


@dataclass
class Gathered:
    """The runs of one plan that came back, by number, each with the folder of what it recorded.

    ``logs`` fetches the event logs of a run to its folder if the plan wants trees; see Gatherer.logs. ``interrupted``:
    the user ended the wait for more.
    """

    plan: Plan
    runs: dict[int, tuple[Attempt, Path]]
    logs: Callable[[Attempt, Path], None]
    warnings: tuple[Warning, ...] = ()
    interrupted: bool = False


@dataclass
class _Taken:
    attempt: Attempt
    folder: Path


@dataclass
class Gatherer:
    """Takes what ``storage`` has below ``into``. With ``plan_id``, or its beginning, only that plan counts.

    ``plan`` is one that is known although none of its runs may be there. ``waiting`` gets the numbers of the runs that
    are not there yet, whenever that changes.
    """

    storage: Storage
    into: Path
    plan_id: str = ""
    plan: Plan | None = None
    waiting: Callable[[Collection[int]], None] = lambda _: None
    _taken: dict[str, _Taken] = field(default_factory=dict)
    _flaws: dict[str, ArchiveFlaw] = field(default_factory=dict)

    def gather(self, wait_s: float = 0.0) -> Gathered:
        """Return what there is; for up to ``wait_s`` seconds, wait until all runs of the plan are.

        Raises UsageError if there are several plans and none was chosen, AuditNotFoundError if no run is there,
        StorageError or RemoteStorageError if the archives cannot be read or written.
        """
        end, interrupted = time.monotonic() + wait_s, False
        try:
            self._look()
            missing: set[int] | None = set()
            while time.monotonic() < end and (now := self._missing()) != set():
                if now != missing and now is not None:
                    self.waiting(sorted(now))
                missing = now
                time.sleep(min(POLL_S, max(0.0, end - time.monotonic())))
                self._look()
        except KeyboardInterrupt:
            interrupted = True
        return self._found(interrupted=interrupted)

    def logs(self, attempt: Attempt, folder: Path) -> None:
        """Fetch the event logs that the trees in the folder of a run belong to.

        Raises StorageError if they are not stored whole, or the storage fails.
        """
        name = logs_of(attempt)
        needed = f"the step at which run {attempt.run} differs is in it"
        if name not in self.storage.names():
            hint = f"Copy it back to {self.storage.url}, from where it was moved or kept; or do all runs again."
            raise StorageError(f"{name} is not in {self.storage.url}, and {needed}", hint)
        with tempfile.TemporaryDirectory(dir=self.into) as directory:
            copy, taken = Path(directory) / "archive", Path(directory) / "logs"
            self.storage.fetch(name, copy)
            try:
                unpacked = unpack(copy, taken)
                if unpacked.id != attempt.id:
                    raise ArchiveError(ArchiveFlaw.CHANGED)
                for file in unpacked.files:
                    if log_rows.blocks_of(folder / file).exists():
                        (taken / file).replace(folder / file)
            except ArchiveError as error:
                hint = f"Store the whole file in {self.storage.url} again, or do all runs again."
                raise StorageError(f"{name} in {self.storage.url} is {error.flaw}, and {needed}", hint) from error
            except OSError as error:
                raise StorageError.of(f"write {folder}", error) from error

    def _look(self) -> None:
        """Take each archive that is new, and again each that was not whole: it may be on its way."""
        for name in self.storage.names():
            if not name.endswith(SUFFIX) or name in self._taken:
                continue
            with tempfile.TemporaryDirectory(dir=self.into) as folder:
                copy = Path(folder) / "archive"
                self.storage.fetch(name, copy)
                run_folder = self.into / f"taken-{len(self._taken)}"
                try:
                    self._taken[name] = _Taken(unpack(copy, run_folder), run_folder)
                    self._flaws.pop(name, None)
                except ArchiveError as error:
                    self._flaws[name] = error.flaw
                except OSError as error:
                    raise StorageError.of(f"write {run_folder}", error) from error

    def _plans(self) -> dict[str, Plan]:
        plans = {taken.attempt.plan.id: taken.attempt.plan for taken in self._taken.values()}
        return {**plans, **({self.plan.id: self.plan} if self.plan is not None else {})}

    def _missing(self) -> set[int] | None:
        """Return the numbers of the runs that are not there, None if the plan is not known yet."""
        plans = {name: plan for name, plan in self._plans().items() if name.startswith(self.plan_id)}
        if len(plans) != 1:
            return None
        [(chosen, plan)] = plans.items()
        there = {one.attempt.run for one in self._taken.values() if one.attempt.plan.id == chosen}
        return {*range(1, plan.total + 1)} - there

    def _found(self, *, interrupted: bool) -> Gathered:
        plan = self._chosen()
        warnings: list[Warning] = [ArchiveFlawed(archive=name, flaw=flaw) for name, flaw in sorted(self._flaws.items())]
        runs: defaultdict[int, list[tuple[str, _Taken]]] = defaultdict(list)
        others: list[str] = []
        for name, taken in sorted(self._taken.items()):
            if taken.attempt.plan.id == plan.id:
                runs[taken.attempt.run].append((name, taken))
            else:
                others.append(name)
        if others:
            warnings.append(ArchivesOfOtherPlans(archives=tuple(others[:_SHOWN]), more=max(0, len(others) - _SHOWN)))
        first_attempts = {}
        for number, attempts in sorted(runs.items()):
            attempts.sort(key=lambda one: (one[0] != name_of(plan, one[1].attempt.run), one[0]))
            (counted, first), *more = attempts
            first_attempts[number] = first.attempt, first.folder
            warnings += [
                RunStoredTwice(archive=name, counted=counted, is_copy=other.attempt.id == first.attempt.id)
                for name, other in more
            ]
        if not first_attempts:
            raise self._nothing(f" of plan {plan.id}")
        return Gathered(plan, first_attempts, self.logs, tuple(warnings), interrupted)

    def _chosen(self) -> Plan:
        plans = self._plans()
        if self.plan_id:
            matching = [plan for name, plan in plans.items() if name.startswith(self.plan_id)]
        else:
            matching = list(plans.values())
        if len(matching) > 1:
            listed = ", ".join(f"{plan.id} ({' '.join(redact.command(plan.command))})" for plan in matching)
            message = f"{self.storage.url} has runs of {len(matching)} plans: {listed}"
            raise UsageError(message, f"Choose one: --plan {matching[0].id}")
        if not matching:
            raise self._nothing(f" of plan {self.plan_id}" if self.plan_id else "")
        return matching[0]

    def _nothing(self, of: str) -> AuditNotFoundError:
        flawed = [f"{name} is {flaw}" for name, flaw in sorted(self._flaws.items())]
        message = "; ".join([f"no run{of} in {self.storage.url}", *flawed[:_SHOWN]])
        return AuditNotFoundError(message, "Start workers, or wait for them with --wait 1h.")


# What came back of a run: its archive, as a result like that of a run which was started here.


_LOGS = (f"*{wire.LOG_SUFFIX}", f"*{wire.OPS_SUFFIX}")
"""Files of which the auditor reads paths."""


class Reader:
    """Reads what came with each run. ``out`` has the results of the audit."""

    def __init__(self, out: Path) -> None:
        self._out = out

    def result(self, spec: RunSpec, attempt: Attempt, folder: Path, logs: Callable[[], None] = lambda: None) -> Result:
        """Return the result of a run, whose ``folder`` becomes that of ``spec``: paths are as if it had run here.

        ``logs`` is to bring its event logs if they are needed and not there. Raises StorageError if anything fails.
        """
        folders = {attempt.cwd: str(spec.cwd), attempt.place: str(self._out)}
        try:
            private.make_folder(spec.folder.parent)
            shutil.move(folder, spec.folder)
            for path in (path for pattern in _LOGS for path in spec.folder.rglob(pattern)):
                _rename(path, folders)
        except OSError as error:
            raise StorageError.of(f"write to {spec.folder}", error) from error
        if any(log_rows.folded(path) is None for path in spec.folder.rglob(f"*{log_rows.SUFFIX}")):
            hint = f"Install detaudit {attempt.plan.detaudit} here, as on the machines of the workers."
            raise StorageError(f"the trees of run {attempt.run} cannot be read by detaudit {__version__}", hint)
        processes = log.read_run(spec.folder, logs)
        run = msgspec.structs.replace(attempt.result, log_dir=spec.log_dir)
        if run.through:
            cut(processes, run.through)
        record = compared(spec, processes, attempt.unhooked, None if run.through else files.kept(spec.folder))
        return Result(run, processes, record, attempt.threads, _place(attempt, processes))


def _place(attempt: Attempt, processes: Sequence[log.Process]) -> RunMachine:
    """Return where a run was done. A machine without an identity is known by its name."""
    facts = copy.deepcopy(attempt.machine)
    environment.add_processes(facts, processes)
    host = str(facts.get("host", ""))
    return RunMachine(
        str(facts.get("id") or host), host, environment.relevant_of_machine(facts), attempt.refused, attempt.machine
    )


def _rename(path: Path, folders: Mapping[str, str]) -> None:
    """Replace folders at the beginning of texts in a file of JSON lines; the longest path is looked for first.

    The names of rows stay as they are if their blocks are known: those are of the names too.
    """
    changes = [
        (msgspec.json.encode(old)[:-1] + end, msgspec.json.encode(new)[:-1] + end)
        for old, new in sorted(folders.items(), key=lambda one: -len(one[0]))
        if old not in ("", "/", new)
        for end in (b"/", b'"')
    ]
    kept = b'{"k":"name"' if log_rows.blocks_of(path).exists() else b"\n\n"

    def change(text: bytes) -> bytes:
        return text if text.startswith(kept) else reduce(lambda changed, one: changed.replace(*one), changes, text)

    if changes:
        half = path.with_name(path.name + ".part")
        with open(path, "rb") as lines, open(half, "wb", opener=private.opener) as file:
            file.writelines(map(change, lines))
        half.replace(path)


# Judge the runs of a plan that came back, as if all had been started here.


def join(gathered: Gathered, out: Path, cwd: Path, across: Across = Across.FAIL) -> Audit:
    """Return the report on the runs of a plan, and keep it and them in the folder ``out``.

    Lines of code are read from ``cwd`` if that has the code of the plan.
    Raises StorageError if the results cannot be written, or event logs that are needed cannot be fetched.
    """
    plan, reader = gathered.plan, Reader(out)
    settings = replace(_settings(plan, out, cwd), across=across)
    audit = AuditInProgress(settings, {})
    code = out / "code" if other_sources(plan, cwd) else cwd
    for first_run, recipe in zip(range(1, plan.total + 1, plan.runs), plan.recipes, strict=True):
        numbers = range(first_run, first_run + plan.runs)
        runs = {number - first_run + 1: gathered.runs[number] for number in numbers if number in gathered.runs}
        group_plan = plan_group(settings, recipe, SharedWorkspace(cwd), {})
        group = audit.begin(group_plan, code)
        for number, (attempt, folder) in runs.items():
            spec = group_plan.spec(number)
            logs = partial(gathered.logs, attempt, spec.folder)  # asked for if the run differs from the first
            audit.take(group, reader.result(spec, attempt, folder, logs))
        audit.update(group)
    unwatched = () if read(plan.options).isolate or len(gathered.runs) < 2 else (LeftoversUnchecked(apart=True),)
    warnings = (*gathered.warnings, *unwatched)
    report = audit.report(warnings=warnings, interrupted=gathered.interrupted)
    store.save(out, report)
    return report


def _settings(plan: Plan, out: Path, cwd: Path) -> Settings:
    target = Target(plan.arguments, plan.script, plan.module, plan.python or sys.executable)
    usual = plan.settings(target, out, cwd)
    return replace(usual, outer={}, started=plan.created)
