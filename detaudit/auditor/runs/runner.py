"""Start runs from the same state, follow them, and read what they recorded."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import msgspec

from detaudit.auditor.evidence import event_logs, outputs
from detaudit.auditor.evidence.logged import Block
from detaudit.auditor.evidence.unhooked import Watch
from detaudit.auditor.evidence.written import Collector, File, elsewhere, keep
from detaudit.auditor.judge import comparer
from detaudit.auditor.judge.crowding import threads
from detaudit.auditor.judge.machines import Place
from detaudit.auditor.judge.run_status import compared, ended, ended_after, judge
from detaudit.auditor.judge.through import common_step, cut, reached, training_processes
from detaudit.auditor.runs.followed import WHOLE, Followed, Limits
from detaudit.auditor.runs.observer import Observer, OfLatest
from detaudit.launch import Launcher, RunSpec, refusals
from detaudit.launch.changes import MOST_ENTRIES, Stamps, stamps, written
from detaudit.launch.leftovers import LeftoverFiles
from detaudit.launch.plan import Settings, workspace_for
from detaudit.launch.until import Until
from detaudit.launch.workspace import Workspaces
from detaudit.model import FlagState, Run, RunRecord, Warning
from detaudit.model.warnings import FilesUnsearched, LeftoversUnchecked
from detaudit.recipe.flags import Flag


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
        self._read: list[str] = []
        self._known: dict[bytes, Block] = {}
        self._settings, self._launcher, self._observer = settings, launcher, observer
        self._watch_files = None if settings.isolate else LeftoverFiles()
        self._collector = Collector()
        self._unsearched, self._runs = False, 0
        self._until, self._trained_by = settings.until, 0
        self._under_way: set[int] = set()
        self._reading = threading.Lock()  # what was read of one run is used for the next

    @property
    def leftovers(self) -> list[str]:
        """The files that one run wrote and a later one read."""
        return sorted({os.path.relpath(path, self._settings.cwd) for path in self._read})

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """What was not noticed of the files that runs write and read."""
        unwatched = self._watch_files is not None and not self._watch_files.watching and self._runs > 1
        found: list[Warning] = [LeftoversUnchecked()] if unwatched else []
        if self._unsearched:
            found.append(FilesUnsearched(folder=str(self._settings.cwd), limit=MOST_ENTRIES))
        return tuple(found)

    def refused(self, flags: Iterable[Flag]) -> Mapping[str, FlagState]:
        """Return the state of each flag that is not applied where the runs are done."""
        return refusals.refused(flags, self._settings.target)

    def place(self, spec: RunSpec) -> Place | None:
        """Return where a finished run was done, None for this machine."""
        return None

    def run(self, number: int, spec: RunSpec, limits: Limits = WHOLE, *, carry_on: bool = False) -> Result:
        """Run ``spec`` to its end, or to its ``limits``; without any, it is ended where the settings say (--until).

        If it is to ``carry_on``, it works in what an earlier run left; the caller has made the folder.
        """
        self._observer.run_started(number, spec.timeout)
        self._observer.run_prepared(number, spec)
        self._runs += 1
        if limits.last_step is None:
            limits = replace(limits, until=limits.until or self._until, trained_by=self._trained_by)
        self._under_way.add(number)
        self._observer.at_once(len(self._under_way))
        try:
            return self._run(number, spec, limits, carry_on=carry_on)
        finally:
            self._under_way.discard(number)

    def _run(self, number: int, spec: RunSpec, limits: Limits, *, carry_on: bool) -> Result:
        space = self.space.elsewhere(spec.place, spec.slot.name)
        followed = Followed(spec, limits, OfLatest(number, self._under_way, self._observer), number)
        leftovers = None if carry_on else self._watch_files
        with contextlib.nullcontext() if carry_on else space.fresh():
            before = self._stamps(spec)
            if leftovers is not None:
                leftovers.before_run(before)
            watch, started = self._watch(spec, space), time.time()
            changed: list[str] = []
            read: Sequence[str] = ()
            try:
                outcome = self._launcher.launch(spec, followed)
            finally:
                changed = written(before, self._stamps(spec))
                if leftovers is not None:
                    read = leftovers.after_run(changed)
                    self._read += read
            with self._reading:
                processes = event_logs.read_run(spec.folder, self._known)
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
                known = outputs.facts(spec, started, time.time(), processes)
                files = self._collect(spec, processes, changed, read, unhooked.named)
                left = outputs.of_run(spec.folder, files, known, outcome.exit_code, self._settings.outputs)
                outputs.keep(left, spec.folder)
        run = judge(number, spec, outcome, processes, unhooked, left)
        return _result(run, followed, processes, compared(spec, processes, unhooked.parts, left), used)

    def ended_after(self, step: int, processes: Sequence[event_logs.Process]) -> None:
        """Leave of a run what it did through a step. The first one sets it for all if the time was given."""
        cut(processes, step)
        self._until = self._until and Until(step=step)
        self._trained_by = self._trained_by or training_processes(processes)

    def _stamps(self, spec: RunSpec) -> Stamps:
        wanted = self._settings.files or self._watch_files is not None
        results = self._settings.out
        if not wanted:
            return Stamps({})
        found = stamps(spec.cwd, results if not spec.cwd.is_relative_to(results) else Path())
        self._unsearched = self._unsearched or not found.complete
        return found

    def _collect(
        self,
        spec: RunSpec,
        processes: Sequence[event_logs.Process],
        changed: Sequence[str],
        read: Sequence[str],
        named: Collection[str],
    ) -> tuple[File, ...]:
        """Return the files that a run wrote, and keep their digests in its folder."""
        if not self._settings.files:
            return ()
        opened = (path for process in processes for path in process.wrote)
        others = elsewhere(opened, spec.cwd, self._settings.out, spec.env)
        unchanged = [path for path in read if path not in set(changed)]
        files = self._collector.collect(spec.cwd, [*changed, *others], unchanged, named)
        keep(files, spec.folder)
        return files

    def record(self, spec: RunSpec, processes: Sequence[event_logs.Process], *, to_its_end: bool) -> RunRecord:
        """Return what a finished run is compared by; of what left it, what was kept in its folder."""
        watch = Watch(self._settings.loss_pattern, [], spec.cwd, self._settings.out)
        left = outputs.kept(spec.folder) if to_its_end else None
        return compared(spec, processes, watch.look(spec.folder).parts, left)

    def _watch(self, spec: RunSpec, space: Workspaces) -> Watch:
        settings = self._settings
        paths = [space.inside(path) for path in settings.artifacts]
        return Watch(settings.loss_pattern, paths, spec.cwd, settings.out)


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
