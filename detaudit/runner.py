"""Runs from the same state, one after another or at once, followed while they go on; stop one, and resume it."""

import contextlib
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from detaudit.config.flags import Flag
from detaudit.config.options import Until
from detaudit.config.outputs import Listed, folder_parts, load_outputs
from detaudit.judge import comparer
from detaudit.judge.conditions import RunMachine, threads
from detaudit.judge.live import Abreast, Follower
from detaudit.launch import EnoughError, Launcher, RunSpec, refusals
from detaudit.launch.plan import Settings, workspace_for
from detaudit.launch.put_aside import StateInUseError, put_aside, remove
from detaudit.launch.slots import Jobs, Pool
from detaudit.launch.workspace import (
    MOST_ENTRIES,
    LeftoverFiles,
    Prefixes,
    ReadFile,
    RunName,
    Stamps,
    Watching,
    Workspaces,
    links,
    own_outputs,
    stamps,
    written,
)
from detaudit.model import ALL_STEPS, FlagState, OutputDifference, Run, RunError, RunRecord, Status, Warning
from detaudit.model.files import StateRead
from detaudit.model.outputs import Outputs, RunFacts
from detaudit.model.problems import EndedAfterStep, EndedAtDifference, NoTraining, RecorderNotLoaded
from detaudit.model.warnings import FailedAfterLeftovers, FilesUnsearched, LeftoversUnchecked, RunRepeated
from detaudit.outputs import text
from detaudit.runs import environment, live_log, log
from detaudit.runs.files import (
    Changes,
    Collector,
    Databases,
    Watch,
    changes_of,
    facts_of,
    keep,
    keep_first_attempt,
    kept,
    numbered,
    of_outputs,
    shown_path,
)
from detaudit.runs.status import (
    common_step,
    compared,
    cut,
    ended,
    ended_after,
    judge,
    reached,
    says_it_exists,
    training_processes,
)

# The progress of an audit, as calls that do nothing by default.


class Observer:
    """Is notified of the progress of an audit; does nothing by itself."""

    def audit_started(self, name: str) -> None:
        """Note that one of several audits begins."""

    def group_started(self, recipe: str, runs: int) -> None:
        """Note that the runs of a recipe begin."""

    def proof_started(self, runs: int, through: int, full_runs: int, seconds: float) -> None:
        """Note that an answer needs so many more runs through a step and to the end, and about how long they take."""

    def only_outputs_differ(self, first: OutputDifference, seconds: float) -> None:
        """Note that the trainings match and what left the runs differs, so that each run goes to its end."""

    def trial_started(self, flags: tuple[str, ...], tried: int) -> None:
        """Note which flags are tried next, and how many sets of flags were before."""

    def runs_planned(self, runs: int, least: bool) -> None:
        """Note how many runs this recipe has; at ``least`` so many, if each goes further than the last."""

    def differs(self, step: int) -> None:
        """Note that the run under way differs from another, by this step."""

    def at_once(self, runs: int) -> None:
        """Note how many runs are under way, now that one more began."""

    def stays_on(self, machine: str) -> None:
        """Note the machine that does all runs, or others like it."""

    def repeated(self, why: RunRepeated) -> None:
        """Note that a run is done again, and why."""

    def last_step(self, step: int) -> None:
        """Note the step after which the run under way will be ended."""

    def run_started(self, number: int, timeout: float | None) -> None:
        """Note that a run begins; ``timeout`` is in seconds."""

    def run_prepared(self, number: int, spec: RunSpec) -> None:
        """Note how the run that begins is started."""

    def progress(self, step: int, loss: float | None) -> None:
        """Note how far the run under way got."""

    def run_finished(self, run: Run) -> None:
        """Note a run that ended."""


class OfLatest(Observer):
    """Passes on what is seen of a run, and how far it got while it is the latest of those ``under_way``."""

    def __init__(self, number: int, under_way: set[int], observer: Observer) -> None:
        self._number, self._under_way, self._observer = number, under_way, observer

    def differs(self, step: int) -> None:
        """See Observer."""
        self._observer.differs(step)

    def last_step(self, step: int) -> None:
        """See Observer."""
        self._observer.last_step(step)

    def progress(self, step: int, loss: float | None) -> None:
        """See Observer."""
        if self._number == max(self._under_way):
            self._observer.progress(step, loss)


# Follow a run while it goes on, and end it once it need not.


SETTLED_S = 1.0
"""Seconds to wait for other processes that may train too, if it is not known how many do."""

LEAST_S = 2.0
"""Seconds of training whose steps say how fast it is."""


@dataclass(frozen=True)
class Limits:
    """When a run need not go on: it differs from ``reference``, or it got far enough.

    With ``same_length``, one that differs goes on to where the reference was ended. It is far enough once
    ``trained_by`` processes have done ``last_step``. With ``until``, it is once all processes that train have done its
    step, or one step after its seconds; ``trained_by`` is how many did in an earlier run, 0 if there was none.
    ``abreast`` compares it with runs beside it, and says after which step it can be ended.
    """

    reference: RunRecord | None = None
    last_step: int | None = None
    until: Until | None = None
    trained_by: int = 1
    same_length: bool = False
    abreast: Abreast | None = None


WHOLE = Limits()
"""A run goes to its end."""


class Pace:
    """How fast a run does its steps, as far as looks from time to time show."""

    def __init__(self) -> None:
        self._first, self._last = (0, 0.0), (0, 0.0)

    def note(self, step: int) -> None:
        """Note the last step that was recorded by now."""
        if step > self._last[0]:
            self._last = step, time.monotonic()
            self._first = self._first if self._first[0] else self._last

    @property
    def seconds(self) -> float:
        """The seconds since the first step was seen, 0 if none was."""
        return time.monotonic() - self._first[1] if self._first[0] else 0.0

    @property
    def step_s(self) -> float | None:
        """The seconds that a step took, None if steps were seen for less than LEAST_S."""
        steps, seconds = (last - first for first, last in zip(self._first, self._last, strict=True))
        return seconds / steps if steps and seconds >= LEAST_S else None


class Followed:
    """Looks at each tick at what a run has written; raises EnoughError if it need not go on, and says why."""

    def __init__(self, spec: RunSpec, limits: Limits, observer: Observer, number: int = 1) -> None:
        self._growing = live_log.Growing(spec.live)
        self._tails: defaultdict[Path, live_log.Tail] = defaultdict(live_log.Tail)
        self._follower, self._limits, self._observer = Follower(limits.reference), limits, observer
        self._started, self._since, self._number = time.monotonic(), 0.0, number
        self._pace = Pace()
        self.until = limits.until
        self.differs = False
        end = limits.last_step or (limits.until.step if limits.until else None)
        if end is not None and end < ALL_STEPS:
            observer.last_step(end)
        self.enough: RunError | None = None

    def __call__(self) -> None:
        """Look once."""
        differs = False
        for path, news in self._growing.new():
            self._tails[path].take(news)
            differs = differs or self._follower.differs(path, news)
            if self._limits.abreast is not None:
                self._limits.abreast.take(self._number, path, news)
        furthest = max(self._tails.values(), key=lambda tail: tail.step, default=live_log.Tail())
        self._observer.progress(
            furthest.step or max((tail.calls for tail in self._tails.values()), default=0), furthest.loss
        )
        self._pace.note(furthest.step)
        if differs and not self.differs:
            self._note_difference(furthest.step)
        if self.differs and not self._limits.same_length:
            self.enough = EndedAtDifference()
        elif self._differs_abreast(furthest.trained) or self._far_enough():
            self.enough = EndedAfterStep(step=furthest.step)
        if self.enough is not None:
            raise EnoughError

    @property
    def _current(self) -> list[live_log.Tail]:
        """How far processes got, without the ranks that were started again since."""
        last = max((tail.attempt or 0 for tail in self._tails.values()), default=0)
        return [tail for tail in self._tails.values() if tail.attempt in (None, last)]

    @property
    def step_s(self) -> float | None:
        """The seconds that a step took, None if too few were seen to say."""
        return self._pace.step_s

    def _note_difference(self, step: int) -> None:
        self.differs = True
        self._observer.differs(step)
        through = self._limits.reference.through if self._limits.reference else None
        if self._limits.same_length and through is not None:
            self.until = Until(step=through)
            self._observer.last_step(through)

    def _differs_abreast(self, step: int) -> bool:
        """Return whether runs at once differ, and this one did that step; then it is ended there."""
        abreast = self._limits.abreast
        if abreast is None or abreast.step is None:
            return False
        if step < abreast.step or self._pace.seconds < abreast.after_s:
            return False
        self.until = Until(step=abreast.step)
        self._observer.differs(abreast.step)
        return True

    def _far_enough(self) -> bool:
        until, step = self.until, self._limits.last_step
        if until is not None:
            if until.in_training:
                return self._pace.seconds >= (until.seconds or 0.0) and self._settled(2)
            waited = time.monotonic() - self._started >= (until.seconds or 0.0)
            return waited and self._settled(until.step or 1)
        if step is None or any(tail.attempt for tail in self._current):  # what came before may count from other steps
            return False
        return sum(tail.step >= step for tail in self._current) >= self._limits.trained_by

    def _settled(self, step: int) -> bool:
        """Return whether all processes that train have done a step, and no other began to within a second."""
        training = [tail for tail in self._current if tail.trained]
        far = [tail for tail in training if tail.trained >= step]
        expected = self._limits.trained_by or max((tail.world for tail in training), default=1)
        if not far or len(training) < expected or any(tail.may_train for tail in training if tail not in far):
            self._since = 0.0
            return False
        now = time.monotonic()
        self._since = self._since or now
        others = any(tail.may_train and not tail.trained for tail in self._current)
        return bool(self._limits.trained_by) or not others or now - self._since >= SETTLED_S


# Start runs from the same state, follow them, and read what they recorded.


_SHOWN = 3
"""Files that an error names."""


@dataclass(frozen=True)
class Result:
    """One run, the processes it had, and what it is compared by.

    ``threads`` is how many it used if others ran beside it, ``machine`` where it was done, None for this machine.
    """

    run: Run
    processes: Sequence[log.Process]
    record: RunRecord
    threads: int = 0
    machine: RunMachine | None = None


class Runner:
    """Starts the runs of an audit. Those in different slots may be run in several threads at once."""

    def __init__(self, settings: Settings, launcher: Launcher, observer: Observer) -> None:
        self.space = workspace_for(settings)
        self._settings, self._launcher, self._observer = settings, launcher, observer
        self._left = LeftoverFiles()
        self._carried: list[str] = []
        self._first_folders: frozenset[str] | None = None
        self._databases = Databases()
        self._only_added: dict[str, bool] = {}
        self._settled: set[str] = set()
        self._folders: set[str] = set()
        self._trained: dict[str, int] = {}
        self._finished: dict[str, list[int]] = {}
        self.starts_fresh = False
        """Whether runs start without what earlier ones left, once any read it."""
        self._without_left = False
        self._ended: dict[RunName, set[str]] = {}
        self._uncompared: Sequence[str] = ()  # what only runs had made that were ended, and one makes now
        self._collector = Collector(settings.outputs)
        self._unsearched, self._runs = False, 0
        self._until, self._trained_by = settings.until, 0
        self._under_way: set[int] = set()
        self._reading = threading.Lock()  # one run after another, in the order of their ends

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
        unnoticed: list[Warning] = [LeftoversUnchecked()] if unwatched else []
        if self._unsearched:
            unnoticed.append(FilesUnsearched(folder=str(self._settings.cwd), limit=MOST_ENTRIES))
        return tuple(unnoticed)

    def state_read(self, recipe: str) -> tuple[ReadFile, ...]:
        """Return what runs with this recipe read of earlier ones, each file once, the reads of known lines first.

        A database that existed before the audit, and that runs only added rows to, is opened to write.
        """
        by_path: dict[str, ReadFile] = {}
        for one in sorted(self._left.reads, key=lambda one: not one.line):
            if one.by.recipe == recipe and (one.left.created or not self._only_added.get(one.left.path)):
                by_path.setdefault(one.left.path, one)
        return tuple(by_path.values())

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

    def refused(self, flags: Iterable[Flag]) -> Mapping[str, FlagState]:
        """Return the state of each flag that is not applied where the runs are done."""
        return refusals.refused(flags, self._settings.target)

    def machine(self, spec: RunSpec) -> RunMachine | None:
        """Return where a finished run was done, None for this machine."""
        return None

    def run(
        self,
        number: int,
        spec: RunSpec,
        limits: Limits = WHOLE,
        *,
        carry_on: bool = False,
        without: Sequence[ReadFile] = (),
        first: RunRecord | None = None,
    ) -> Result:
        """Run ``spec`` to its end, or to its ``limits``; without any, it is ended where the settings say (--until).

        A run that fails on what earlier runs left is done again without it; so is one that read it and differs from the
        ``first``, if runs are to start fresh (``starts_fresh``), only what it read differs, or it is the state of a
        training that was ended early: the audit did that, and others may never do.
        If it is to ``carry_on``, it works in what an earlier run left; the caller has made the folder. It starts
        ``without`` what was read here, and without all that runs left if that can be: a run may look whether a file is
        there, which nobody sees. Raises StateInUseError if neither can be.
        """
        self._observer.run_started(number, spec.timeout)
        self._observer.run_prepared(number, spec)
        self._runs += 1
        if limits.last_step is None:
            limits = replace(limits, until=limits.until or self._until, trained_by=self._trained_by)
        self._under_way.add(number)
        self._observer.at_once(len(self._under_way))
        self._uncompared = [one.path for one in self._left.left if one.by in self._ended] if without else []
        try:
            with self._without(without) if without else self._fresh(carry_on):
                result = self._run(number, spec, limits, carry_on=carry_on)
            why = self._why_again(number, spec, result, first) if len(self._under_way) == 1 and not carry_on else None
            return result if why is None else self._again(number, spec, limits, why, first) or result
        finally:
            self._under_way.discard(number)

    def _why_again(self, number: int, spec: RunSpec, result: Result, first: RunRecord | None) -> RunRepeated | None:
        """Return what of earlier runs made one fail, or differ from the first, as far as anything shows that.

        Where trainings match and a file differs that the run read, it may only count the runs.
        """
        run = result.run
        for one in run.warnings:
            if isinstance(one, FailedAfterLeftovers) and says_it_exists(run.stderr_tail, one.files):
                return RunRepeated(run=number, after_failure=True, files=one.files, more=one.more)
        reads = [one for one in self._left.reads if one.by == _name(number, spec) and one.left.created]
        files = [shown_path(one.left.path, self._settings.cwd) for one in reads]
        removed = any(one.left.path in self._ended.get(one.left.by, ()) for one in reads)
        shown, more = tuple(files[:_SHOWN]), max(0, len(files) - _SHOWN)
        failed = run.status is Status.FAILED
        why = RunRepeated(run=number, after_failure=failed, files=shown, more=more, removed=removed)
        if failed:
            return why if removed else None  # the other may have been ended while it wrote a file
        if first is None or not reads or not (run.finished or run.status is Status.STOPPED):
            return None
        difference = comparer.first_difference(first, result.record)
        counts = difference is not None and difference.output is not None and difference.output.path in files
        # Otherwise, an audit says what a training does that resumes.
        return why if difference is not None and (counts or removed or self.starts_fresh) else None

    def _again(
        self, number: int, spec: RunSpec, limits: Limits, why: RunRepeated, first: RunRecord | None
    ) -> Result | None:
        """Do a run again without what earlier ones left, and let later ones do without it; None if that cannot be.

        It says so unless it fails, or differs, as the first attempt did.
        """
        paths = self._left.to_put_aside(self._left.left)
        if not paths and not why.removed:  # a training may have removed itself what it resumed from
            return None
        try:
            if why.removed:
                self._remove_ended(_name(number, spec))
            with contextlib.nullcontext() if why.removed else put_aside(paths, self._settings.out, self._settings.mark):
                self._observer.repeated(why)
                self._left.forget_reads(_name(number, spec))
                keep_first_attempt(spec.folder)
                result = self._run(number, spec, limits, carry_on=False)
        except StateInUseError:
            return None
        self._without_left = self._without_left or not why.removed
        run = result.run
        differs = first is not None and comparer.first_difference(first, result.record) is not None
        if run.status is Status.FAILED if why.after_failure else differs:
            return result
        return replace(result, run=msgspec.structs.replace(run, warnings=(*run.warnings, why)))

    @contextlib.contextmanager
    def _without(self, reads: Iterable[ReadFile]) -> Iterator[None]:
        """Start without all that runs left, or else without what was read. Raises StateInUseError if neither can be."""
        everything, read = map(self._left.to_put_aside, (self._left.left, (one.left for one in reads)))
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(put_aside(everything, self._settings.out, self._settings.mark))
            except StateInUseError:
                if read == everything:
                    raise
                stack.enter_context(put_aside(read, self._settings.out, self._settings.mark))
            yield

    @contextlib.contextmanager
    def _fresh(self, carry_on: bool) -> Iterator[None]:
        """Start without what earlier runs left if one failed on it, or if runs are to and one read it; if it can be."""
        with contextlib.ExitStack() as stack:
            if (self._without_left or (self.starts_fresh and self._left.reads)) and not carry_on:
                with contextlib.suppress(StateInUseError):
                    stack.enter_context(self._without(self._left.reads))
                    self.settle(self._left.reads)
            yield

    def _run(self, number: int, spec: RunSpec, limits: Limits, *, carry_on: bool) -> Result:
        space = self.space.with_copy(spec.copy_name, spec.slot.name)
        followed = Followed(spec, limits, OfLatest(number, self._under_way, self._observer), number)
        with contextlib.nullcontext() if carry_on else space.fresh():
            before = self._stamps(spec)
            if self._first_folders is None:
                self._first_folders = before.folders if before.complete and not self._settings.isolate else None
            known = [one.path for one in self._left.left]
            prefixes, databases = Prefixes(known), self._databases.before(dict.fromkeys((*_databases(before), *known)))
            watching = self._watching(spec, before, self._carried if carry_on else [])
            watch = self._watch(spec, space)
            after, scanned, led = before, list[str](), list[tuple[str, str, bool]]()
            native: Collection[str] = ()
            started = time.time()
            try:
                outcome = self._launcher.launch(spec, followed)
            finally:
                ended_at = time.time()
                native = watching.stop()
                after = self._stamps(spec)
                scanned, led = written(before, after), links(before, after)
            with self._reading:
                processes = log.read_run(spec.folder)
                listed = Listed(spec.env)
                changes = changes_of(scanned, before, processes, prefixes, databases, led, complete=after.complete)
                self._carried = [change.path for change in changes.files]
                read = self._take_state(number, spec, processes, changes, listed, native, carry_on=carry_on)
                used = threads(outcome.threads, processes) if spec.slot.name else 0
                through = _through(followed.until, processes, early=outcome.ended)
                if limits.same_length and not followed.differs:
                    through = _of_reference(limits.reference, processes, compared(spec, processes), through)
                if through:
                    self.ended_after(through, processes)
                    run = ended_after(number, spec, outcome, processes, through)
                    self._finished_by(spec).append(number)
                    self._note_states(_name(number, spec), ended_at - run.steps * (followed.step_s or 0.0))
                    return _result(run, followed, processes, compared(spec, processes), used)
                if outcome.ended and followed.enough is not None:
                    run = ended(number, spec, processes, outcome.wall_s, followed.enough)
                    return Result(run, processes, compared(spec, processes), used)
                unhooked = watch.look(spec.folder)
                facts = facts_of(spec, processes, started, ended_at, numbered(before.folders, after.folders, spec.cwd))
                left = self._collect(spec, changes, listed, read, unhooked.named, facts)
                names = {shown_path(path, spec.cwd) for path in self._uncompared}
                files = tuple(file for file in left.files if file.path not in names)
                left = msgspec.structs.replace(left, files=files, exit_code=outcome.exit_code)
                keep(left, spec.folder)
                if self._settings.outputs_suffice and not any(process.trained for process in processes):
                    unhooked = of_outputs(left)
        run = self._trained_nothing(judge(number, spec, outcome, processes, unhooked, left), spec, processes, read)
        run = self._found_leftovers(run, spec, known)
        return _result(run, followed, processes, compared(spec, processes, unhooked.parts, left), used)

    def ended_after(self, step: int, processes: Sequence[log.Process]) -> None:
        """Leave of a run what it did through a step. The first one sets it for all if the time was given."""
        cut(processes, step)
        self._until = self._until and Until(step=step)
        self._trained_by = self._trained_by or training_processes(processes)

    def _note_states(self, name: RunName, begun: float) -> None:
        """Note which files a run that was ended wrote here while it trained, from which others may resume."""
        self._ended[name] = set()
        for one in self._left.left:
            if one.by == name and one.created and self._is_here(one.path):
                with contextlib.suppress(OSError):
                    if os.lstat(one.path).st_mtime >= begun:
                        self._ended[name].add(one.path)

    def _remove_ended(self, name: RunName) -> None:
        """Remove what runs made here that were ended, and this one, which is done again."""
        theirs = {*self._ended, name}
        files = [one.path for one in self._left.left if one.created and one.by in theirs and self._is_here(one.path)]
        remove(files, filter(self._is_here, self._left.folders), self._settings.mark)

    def _is_here(self, path: str) -> bool:
        """Return whether a file is below the working directory; what is elsewhere may be everybody's."""
        return Path(path).is_relative_to(os.path.realpath(self._settings.cwd))

    @property
    def _searches(self) -> bool:
        return self._settings.files or not self._settings.isolate

    def _stamps(self, spec: RunSpec) -> Stamps:
        results = self._settings.out
        if not self._searches:
            return Stamps({})
        out = results if not spec.cwd.is_relative_to(results) else Path()
        current = stamps(spec.cwd, out, sorted(self._folders), without=own_outputs())
        self._unsearched = self._unsearched or not current.complete
        return current

    def _watching(self, spec: RunSpec, before: Stamps, carried: Sequence[str]) -> Watching:
        """Watch what earlier runs left; what a search like that ``before`` finds afterwards is not recorded."""
        more = sorted(self._folders) if self._searches and before.complete else []
        searched = [os.path.realpath(spec.cwd), *more]
        return self._left.before_run(spec.live, searched, folder_parts(load_outputs(), spec.env, searched[0]), carried)

    def _take_state(
        self,
        number: int,
        spec: RunSpec,
        processes: Sequence[log.Process],
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
        rewritten = {change.path for change in changes.files if not change.added_only}
        lines = [
            (line.path, log.display_path(line.file, spec.cwd) if line.file else "", line.line)
            for process in processes
            for line in sorted(process.read, key=lambda line: line.at)
            if line.at <= wrote.get(line.path, line.at) and not (line.changed and line.path in rewritten)
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
        return self._left.after_run(_name(number, spec), reads, stays)

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
        self, run: Run, spec: RunSpec, processes: Sequence[log.Process], read: Sequence[ReadFile]
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

    def _finished_by(self, spec: RunSpec) -> list[int]:
        """Return the runs of this recipe that finished, or were ended."""
        return self._finished.setdefault(spec.recipe.name if spec.recipe else "", [])

    def _found_leftovers(self, run: Run, spec: RunSpec, known: Collection[str]) -> Run:
        """Return a run; one that failed right after the first that did not says which ``known`` files it found."""
        finished = self._finished_by(spec)
        if run.status is Status.OK:
            finished.append(run.id)
        if run.status is not Status.FAILED or len(finished) != 1:
            return run
        before = set(known)
        paths = self._left.to_put_aside(one for one in self._left.left if one.path in before)
        if not paths:
            return run
        outside = not all(Path(path).is_relative_to(os.path.realpath(spec.cwd)) for path in paths)
        finished.append(0)  # said once
        names = [shown_path(path, self._settings.cwd) for path in paths]
        shown, more = tuple(names[:_SHOWN]), max(0, len(names) - _SHOWN)
        warning = FailedAfterLeftovers(run=run.id, finished=finished[0], files=shown, more=more, outside=outside)
        return msgspec.structs.replace(run, warnings=(*run.warnings, warning))

    def record(self, spec: RunSpec, processes: Sequence[log.Process], *, to_its_end: bool) -> RunRecord:
        """Return what a finished run is compared by; of what left it, what was kept in its folder."""
        watch = Watch(self._settings.loss_pattern, [], spec.cwd, self._settings.out)
        left = kept(spec.folder) if to_its_end else None
        return compared(spec, processes, watch.look(spec.folder).parts, left)

    def _watch(self, spec: RunSpec, space: Workspaces) -> Watch:
        settings = self._settings
        paths = [space.inside(path) for path in settings.artifacts]
        return Watch(settings.loss_pattern, paths, spec.cwd, settings.out, settings.outputs.ignore)


def _name(number: int, spec: RunSpec) -> RunName:
    return RunName(spec.recipe.name if spec.recipe else "", number)


def _databases(before: Stamps) -> Iterator[str]:
    """Yield the files that may be databases by their names."""
    return (path for path in before.files if path.endswith((".db", ".db3", ".sqlite", ".sqlite3")))


def _result(run: Run, followed: Followed, processes: Sequence[log.Process], record: RunRecord, used: int) -> Result:
    return Result(msgspec.structs.replace(run, step_s=followed.step_s), processes, record, used)


MakeRunner: TypeAlias = Callable[[Settings, Launcher, Observer], Runner]
"""What starts the runs of an audit: ``Runner`` for this machine."""


def _through(until: Until | None, processes: Sequence[log.Process], *, early: bool) -> int | None:
    """Return the last step of a run that counts, None if all do."""
    if until is None or (until.step is None and not early):
        return None
    step = until.step or common_step(processes)
    return step if step and reached(processes, step) else None


def _of_reference(
    reference: RunRecord | None, processes: Sequence[log.Process], record: RunRecord, through: int | None
) -> int | None:
    """Return the last step that counts of a run that could not be followed: that of the reference if they differ.

    One that ended by itself before that step differs by its end.
    """
    step = reference.through if reference is not None else None
    if reference is None or step is None or (through is not None and through <= step) or not reached(processes, step):
        return through
    return step if comparer.first_difference(reference, record) is not None else through


def described(settings: Settings) -> dict[str, Any]:
    """Return the environment of the runs that these settings do on this machine."""
    machine = environment.describe(settings.jobs.without_devices({**os.environ, **settings.env}))
    share = settings.jobs.slots[0].cpus
    return {**machine, "cpus": len(share)} if share else machine


# Do the runs of a group one after another or several at once, and take their results in the order of their numbers.


class SideBySide:
    """The runs of a group, each in its slot: ``run`` does the one with a number, and launches it with ``pool``.

    A block with it leaves no run under way. If ``first_alone``, the others wait for what the first one shows. Runs
    begin with number ``first``; ``threads`` is how many the runs before it had.
    """

    def __init__(
        self,
        pool: Pool[Result],
        jobs: Jobs,
        run: Callable[[int], Result],
        *,
        first_alone: bool = False,
        first: int = 1,
        threads: int = 0,
    ) -> None:
        self._pool, self._jobs, self._run, self._first = pool, jobs, run, first
        alone = first_alone or (jobs.measured and first == 1)
        self._at_once = 1 if alone else jobs.at_once(threads)
        self._under_way: set[int] = set()
        self._done: dict[int, Result] = {}

    def __enter__(self) -> "SideBySide":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.cancel()

    def results(self, runs: Callable[[], int]) -> Iterator[Result]:
        """Yield the results of ``runs()`` in order, each once it and all before it are there."""
        start = number = self._first
        while number <= runs():
            while number not in self._done:
                while start <= runs() and self._may_start(start):
                    self._under_way.add(start)
                    self._pool.submit(start, partial(self._run, start))
                    start += 1
                finished, result = self._pool.next()
                self._done[finished] = result
                self._under_way.discard(finished)
            result = self._done.pop(number)
            if number == 1:
                self._at_once = self._jobs.at_once(result.threads)
            number += 1
            yield result

    def stop(self) -> Iterator[tuple[int, Result | None]]:
        """End all runs, and yield in order those whose results were not yielded: the result, None if it was ended."""
        results: dict[int, Result | None] = dict.fromkeys(self._under_way)
        results |= {**self._done, **dict(self._pool.cancel())}
        self._under_way, self._done = set(), {}
        yield from sorted(results.items())

    def _may_start(self, number: int) -> bool:
        """Return whether a run may begin now: its slot is free, and so are as many CPUs as it needs."""
        taken = {self._jobs.slot_index(other) for other in self._under_way}
        return len(self._under_way) < self._at_once and self._jobs.slot_index(number) not in taken
