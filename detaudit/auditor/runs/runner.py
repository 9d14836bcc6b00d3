"""Start runs from the same state, follow them, and read what they recorded."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import msgspec

from detaudit.auditor.evidence import event_logs
from detaudit.auditor.evidence.logged import Block
from detaudit.auditor.evidence.outputs import (
    Changes,
    Collector,
    Databases,
    changes_of,
    facts_of,
    keep,
    kept,
    numbered,
    shown_path,
)
from detaudit.auditor.evidence.unhooked import Watch
from detaudit.auditor.judge import comparer
from detaudit.auditor.judge.crowding import threads
from detaudit.auditor.judge.machines import Place
from detaudit.auditor.judge.run_status import compared, ended, ended_after, judge
from detaudit.auditor.judge.through import common_step, cut, reached, training_processes
from detaudit.auditor.runs.followed import WHOLE, Followed, Limits
from detaudit.auditor.runs.observer import Observer, OfLatest
from detaudit.launch import Launcher, RunSpec, refusals
from detaudit.launch.changes import MOST_ENTRIES, Prefixes, Stamps, stamps, written
from detaudit.launch.leftovers import LeftoverFiles, ReadFile, RunName, Watching
from detaudit.launch.plan import Settings, workspace_for
from detaudit.launch.put_aside import StateInUseError, put_aside
from detaudit.launch.until import Until
from detaudit.launch.workspace import Workspaces
from detaudit.model import FlagState, Run, RunRecord, Status, Warning
from detaudit.model.files import StateRead
from detaudit.model.outputs import Outputs, RunFacts
from detaudit.model.problems import NoTraining, RecorderNotLoaded
from detaudit.model.warnings import FilesUnsearched, LeftoversUnchecked
from detaudit.outputs import text
from detaudit.recipe.flags import Flag
from detaudit.recipe.outputs import Listed, folder_parts, load_outputs

_SHOWN = 3
"""Files that an error names."""


@dataclass(frozen=True)
class Result:
    """One run, the processes it had, and what it is compared by.

    ``threads`` is how many it used if others ran beside it, ``place`` where it was done, None for this machine.
    """

    run: Run
    processes: Sequence[event_logs.Process]
    record: RunRecord
    threads: int = 0
    place: Place | None = None


class Runner:
    """Starts the runs of an audit. Those in different slots may be run in several threads at once."""

    def __init__(self, settings: Settings, launcher: Launcher, observer: Observer) -> None:
        self.space = workspace_for(settings)
        self._known: dict[bytes, Block] = {}
        self._settings, self._launcher, self._observer = settings, launcher, observer
        self._left = LeftoverFiles()
        self._first_folders: frozenset[str] | None = None
        self._databases = Databases()
        self._only_added: dict[str, bool] = {}
        self._settled: set[str] = set()
        self._folders: set[str] = set()
        self._trained: dict[str, int] = {}
        self.starts_fresh = False
        """Whether runs start without what earlier ones left, once any read it."""
        self._collector = Collector(settings.outputs)
        self._unsearched, self._runs = False, 0
        self._until, self._trained_by = settings.until, 0
        self._under_way: set[int] = set()
        self._reading = threading.Lock()  # what was read of one run is used for the next

    @property
    def leftovers(self) -> list[str]:
        """The files that one run wrote and a later one read, but for those of which a run more showed what they do."""
        reads = (one.left for one in self._left.reads if one.left.created or not self._only_added.get(one.left.path))
        read = {one.path for one in reads} - self._settled
        return sorted({os.path.relpath(path, self._settings.cwd) for path in read})

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """What was not noticed of the files that runs write and read."""
        unwatched = not self._left.complete and self._runs > 1 and not self._settings.isolate
        found: list[Warning] = [LeftoversUnchecked()] if unwatched else []
        if self._unsearched:
            found.append(FilesUnsearched(folder=str(self._settings.cwd), limit=MOST_ENTRIES))
        return tuple(found)

    def state_read(self, recipe: str) -> tuple[ReadFile, ...]:
        """Return what runs with this recipe read of earlier ones, each file once, the reads of known lines first.

        A database that existed before the audit, and that runs only added rows to, is opened to write.
        """
        found: dict[str, ReadFile] = {}
        for one in sorted(self._left.reads, key=lambda one: not one.line):
            if one.by.recipe == recipe and (one.left.created or not self._only_added.get(one.left.path)):
                found.setdefault(one.left.path, one)
        return tuple(found.values())

    def described(self, read: ReadFile) -> StateRead:
        """Return a read as people name it."""
        cwd = self._settings.cwd
        return StateRead(
            path=shown_path(read.left.path, cwd),
            left_by=read.left.by.number,
            read_by=read.by.number,
            file=read.file,
            line=read.line,
            recipe=read.left.by.recipe if read.left.by.recipe != read.by.recipe else "",
        )

    def settle(self, reads: Iterable[ReadFile]) -> None:
        """Note that a run more showed what these files do."""
        self._settled.update(read.left.path for read in reads)

    def to_put_aside(self, reads: Iterable[ReadFile]) -> tuple[tuple[str, ...], ...]:
        """Return what must be gone for a run to start without this state: all that runs left, or only what was read.

        A run may also look whether a file is there, which nobody sees.
        """
        choices = (self._left.to_put_aside(self._left.left), self._left.to_put_aside(read.left for read in reads))
        return tuple(dict.fromkeys(choices))

    def refused(self, flags: Iterable[Flag]) -> Mapping[str, FlagState]:
        """Return the state of each flag that is not applied where the runs are done."""
        return refusals.refused(flags, self._settings.target)

    def place(self, spec: RunSpec) -> Place | None:
        """Return where a finished run was done, None for this machine."""
        return None

    def run(
        self,
        number: int,
        spec: RunSpec,
        limits: Limits = WHOLE,
        *,
        carry_on: bool = False,
        without: Sequence[str] = (),
    ) -> Result:
        """Run ``spec`` to its end, or to its ``limits``; without any, it is ended where the settings say (--until).

        If it is to ``carry_on``, it works in what an earlier run left; the caller has made the folder. It starts
        ``without`` these files and folders. Raises StateInUseError if that cannot be.
        """
        self._observer.run_started(number, spec.timeout)
        self._observer.run_prepared(number, spec)
        self._runs += 1
        if limits.last_step is None:
            limits = replace(limits, until=limits.until or self._until, trained_by=self._trained_by)
        self._under_way.add(number)
        self._observer.at_once(len(self._under_way))
        try:
            with put_aside(without, self._settings.out, self._settings.mark) if without else self._fresh(carry_on):
                return self._run(number, spec, limits, carry_on=carry_on)
        finally:
            self._under_way.discard(number)

    @contextlib.contextmanager
    def _fresh(self, carry_on: bool) -> Iterator[None]:
        """Start without all that earlier runs left and later ones read, if runs are to, and if it can be done."""
        with contextlib.ExitStack() as stack:
            wanted = self.starts_fresh and not carry_on and bool(self._left.reads)
            for paths in self.to_put_aside(self._left.reads) if wanted else ():
                with contextlib.suppress(StateInUseError):
                    stack.enter_context(put_aside(paths, self._settings.out, self._settings.mark))
                    self.settle(self._left.reads)
                    break
            yield

    def _run(self, number: int, spec: RunSpec, limits: Limits, *, carry_on: bool) -> Result:
        space = self.space.elsewhere(spec.place, spec.slot.name)
        followed = Followed(spec, limits, OfLatest(number, self._under_way, self._observer), number)
        with contextlib.nullcontext() if carry_on else space.fresh():
            before = self._stamps(spec)
            if self._first_folders is None:
                self._first_folders = before.folders if before.complete and not self._settings.isolate else None
            known = [one.path for one in self._left.left]
            prefixes, databases = Prefixes(known), self._databases.before(dict.fromkeys((*_databases(before), *known)))
            watching = self._watching(spec, before)
            watch = self._watch(spec, space)
            after, scanned = before, list[str]()
            native: Collection[str] = ()
            started = time.time()
            try:
                outcome = self._launcher.launch(spec, followed)
            finally:
                ended_at = time.time()
                native = watching.stop()
                after = self._stamps(spec)
                scanned = written(before, after)
            with self._reading:
                processes = event_logs.read_run(spec.folder, self._known)
                listed = Listed(spec.env)
                changes = changes_of(scanned, before, processes, prefixes, databases, complete=after.complete)
                read = self._take_state(number, spec, processes, changes, listed, native, carry_on=carry_on)
                used = threads(outcome.threads, processes) if spec.slot.name else 0
                through = _through(followed.until, processes, early=outcome.ended)
                if limits.same_length and not followed.differs:
                    through = _of_reference(limits.reference, compared(spec, processes), through)
                if through:
                    self.ended_after(through, processes)
                    run = ended_after(number, spec, outcome, processes, through)
                    return _result(run, followed, processes, compared(spec, processes), used)
                if outcome.ended and followed.enough is not None:
                    run = ended(number, spec, processes, outcome.wall_s, followed.enough)
                    return Result(run, processes, compared(spec, processes), used)
                unhooked = watch.look(spec.folder)
                facts = facts_of(spec, processes, started, ended_at, numbered(before.folders, after.folders, spec.cwd))
                left = self._collect(spec, changes, listed, read, unhooked.named, facts)
                left = msgspec.structs.replace(left, exit_code=outcome.exit_code)
                keep(left, spec.folder)
        run = self._trained_nothing(judge(number, spec, outcome, processes, unhooked, left), spec, processes, read)
        return _result(run, followed, processes, compared(spec, processes, unhooked.parts, left), used)

    def ended_after(self, step: int, processes: Sequence[event_logs.Process]) -> None:
        """Leave of a run what it did through a step. The first one sets it for all if the time was given."""
        cut(processes, step)
        self._until = self._until and Until(step=step)
        self._trained_by = self._trained_by or training_processes(processes)

    @property
    def _searches(self) -> bool:
        return self._settings.files or not self._settings.isolate

    def _stamps(self, spec: RunSpec) -> Stamps:
        results = self._settings.out
        if not self._searches:
            return Stamps({})
        found = stamps(spec.cwd, results if not spec.cwd.is_relative_to(results) else Path(), sorted(self._folders))
        self._unsearched = self._unsearched or not found.complete
        return found

    def _watching(self, spec: RunSpec, before: Stamps) -> Watching:
        """Watch what earlier runs left; what a search like that ``before`` finds afterwards is not recorded."""
        more = sorted(self._folders) if self._searches and before.complete else []
        searched = [os.path.realpath(spec.cwd), *more]
        return self._left.before_run(spec.live, searched, folder_parts(load_outputs()))

    def _take_state(
        self,
        number: int,
        spec: RunSpec,
        processes: Sequence[event_logs.Process],
        changes: Changes,
        listed: Listed,
        native: Collection[str],
        *,
        carry_on: bool,
    ) -> tuple[ReadFile, ...]:
        """Note what a run read of earlier ones, and what it left; return the former."""
        wrote: dict[str, int] = {}
        for process in processes:
            for line in process.wrote:
                wrote[line.path] = min(line.at, wrote.get(line.path, line.at))
        lines = [
            (line.path, event_logs.display_path(line.file, spec.cwd) if line.file else "", line.line)
            for process in processes
            for line in sorted(process.read, key=lambda line: line.at)
            if line.at <= wrote.get(line.path, line.at)
        ]
        out, cwd = os.path.realpath(self._settings.out) + os.sep, os.path.realpath(spec.cwd)
        stays = []
        for change in changes.files:
            row = listed.row(change.path, cwd)
            if not change.path.startswith(out) and (row is None or row.state):
                stays.append((change.path, change.existed))
                self._only_added[change.path] = self._only_added.get(change.path, True) and bool(change.rows)
        made = [folder for folder in changes.folders if not folder.startswith(out)]
        self._folders.update(made)
        self._left.note_folders((*made, *self._new_folders(stays, cwd)))
        reads = [] if carry_on else [*lines, *((path, "", 0) for path in native)]
        return self._left.after_run(RunName(spec.recipe.name if spec.recipe else "", number), reads, stays)

    def _new_folders(self, stays: Iterable[tuple[str, bool]], cwd: str) -> Iterator[str]:
        """Yield the folders below the working directory that files are in and that were not there at first."""
        first = self._first_folders
        for path, existed in stays if first is not None else ():
            folder = os.path.dirname(path)
            while not existed and folder.startswith(cwd + os.sep) and folder not in (first or ()):
                yield folder
                folder = os.path.dirname(folder)

    def _collect(
        self,
        spec: RunSpec,
        changes: Changes,
        listed: Listed,
        read: Sequence[ReadFile],
        named: Collection[str],
        facts: RunFacts,
    ) -> Outputs:
        """Return what left a run: the files that it wrote, and what it printed."""
        stdout, stderr = text.load(spec.folder)
        printed = Outputs(stdout=stdout, stderr=stderr, facts=facts, rules=self._settings.outputs)
        if not self._settings.files:
            return printed
        changed = {change.path for change in changes.files}
        same = spec.recipe.name if spec.recipe else ""
        left = [one.path for one in self._left.left if one.by.recipe == same] if read else []  # what it found done
        unchanged = [path for path in (*(one.left.path for one in read), *left) if path not in changed]
        python = self._settings.target.python
        files = self._collector.collect(spec.cwd, changes, unchanged, named, listed=listed, facts=facts, python=python)
        return msgspec.structs.replace(printed, files=files.files, unread=files.unread, listed=files.listed)

    def _trained_nothing(
        self, run: Run, spec: RunSpec, processes: Sequence[event_logs.Process], read: Sequence[ReadFile]
    ) -> Run:
        """Return a run; one that trained nothing, as an earlier one did, says what that one had left."""
        recipe = spec.recipe.name if spec.recipe else ""
        if any(process.trained for process in processes):
            self._trained.setdefault(recipe, run.id)
            return run
        first = self._trained.get(recipe)
        missing = any(isinstance(error, NoTraining | RecorderNotLoaded) for error in run.errors)
        left = [one.left for one in read] or ([*self._left.left] if missing else [])
        if first is None or not left or not (missing or run.status is Status.OK):
            return run
        names = [shown_path(one.path, self._settings.cwd) for one in left if one.by.recipe == recipe]
        imported = next((error.imported for error in run.errors if isinstance(error, NoTraining)), ())
        if not names:
            return run
        error = NoTraining(imported=imported, left=tuple(names[:_SHOWN]), left_by=first, read=bool(read))
        return msgspec.structs.replace(run, status=Status.NOT_RECORDED, errors=(error,))

    def record(self, spec: RunSpec, processes: Sequence[event_logs.Process], *, to_its_end: bool) -> RunRecord:
        """Return what a finished run is compared by; of what left it, what was kept in its folder."""
        watch = Watch(self._settings.loss_pattern, [], spec.cwd, self._settings.out)
        left = kept(spec.folder) if to_its_end else None
        return compared(spec, processes, watch.look(spec.folder).parts, left)

    def _watch(self, spec: RunSpec, space: Workspaces) -> Watch:
        settings = self._settings
        paths = [space.inside(path) for path in settings.artifacts]
        return Watch(settings.loss_pattern, paths, spec.cwd, settings.out, settings.outputs.ignore)


def _databases(before: Stamps) -> Iterator[str]:
    """Yield the files that may be databases by their names."""
    return (path for path in before.files if path.endswith((".db", ".db3", ".sqlite", ".sqlite3")))


def _result(
    run: Run, followed: Followed, processes: Sequence[event_logs.Process], record: RunRecord, used: int
) -> Result:
    return Result(msgspec.structs.replace(run, step_s=followed.step_s), processes, record, used)


MakeRunner: TypeAlias = Callable[[Settings, Launcher, Observer], Runner]
"""What starts the runs of an audit: ``Runner`` for this machine."""


def _through(until: Until | None, processes: Sequence[event_logs.Process], *, early: bool) -> int | None:
    """Return the last step of a run that counts, None if all do."""
    if until is None or (until.step is None and not early):
        return None
    step = until.step or common_step(processes)
    return step if step and reached(processes, step) else None


def _of_reference(reference: RunRecord | None, record: RunRecord, through: int | None) -> int | None:
    """Return the last step that counts of a run that could not be followed: that of the reference if they differ."""
    wanted = reference.through if reference is not None else None
    if reference is None or wanted is None or (through is not None and through <= wanted):
        return through
    return wanted if comparer.first_difference(reference, record) is not None else through
