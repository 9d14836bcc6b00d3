"""The job behind ``resume``, and behind the gate of a check: stop a training, resume it, and name what was lost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from detaudit import restore, store, wire
from detaudit.audit import Auditor
from detaudit.judge import comparer, resumed
from detaudit.launch import Launcher, RunSpec, refusals
from detaudit.launch.plan import Settings, plan_group
from detaudit.launch.target import Target
from detaudit.model import Audit, Difference, Group, Run, Stage, Status, Training, Verdict
from detaudit.model.fact import now
from detaudit.model.problems import Killed
from detaudit.model.resume import Place, Restored, ResumedPoint, ResumeStatus, Resumption
from detaudit.runner import Limits, Observer, Result, Runner
from detaudit.runs import log
from detaudit.runs.status import compared

# Stop a training and resume it, and compare what it did with an uninterrupted run.


@dataclass(frozen=True)
class _Tried:
    """A run that was stopped after a step, and the one that went on with what it had left in the same folder.

    ``after`` is the step after which that was, None if nothing shows it. ``in_order``: the stopped run caught the
    signal, or ended by itself.
    """

    stopped: Result
    resumed: Result
    step: int
    after: int | None
    cwd: Path
    in_order: bool


def stops_of(
    settings: Settings, launcher: Launcher, observer: Observer, group: Group, resume: Target, stop: Target | None
) -> "Stops | None":
    """Return what stops the training that ran uninterrupted as ``group`` says, None if those runs do not match."""
    run = group.first_finished
    if run is None or group.verdict is not Verdict.DETERMINISTIC:
        return None
    runner = Runner(settings, launcher, observer)
    processes = log.read_run(settings.out / run.log_dir)
    spec = plan_group(settings, settings.recipes[0], runner.space, {}).spec(run.id)
    return Stops(settings, runner, Result(run, processes, compared(spec, processes)), resume, stop)


class Stops:
    """Stops and resumes the training of ``settings``, of which ``uninterrupted`` is an uninterrupted run.

    ``stop`` stops by itself; if there is none, the target of the settings ends itself after a step.
    """

    def __init__(
        self, settings: Settings, runner: Runner, uninterrupted: Result, resume: Target, stop: Target | None
    ) -> None:
        self._settings, self._runner, self._uninterrupted = settings, runner, uninterrupted
        self._resume, self._stop = resume, stop
        self._number = 0
        self._asked: dict[int, int | None] = {}
        self.runs = 0

    @property
    def steps(self) -> int:
        """The steps of an uninterrupted run."""
        return self._uninterrupted.run.steps

    def once(self) -> ResumedPoint:
        """Return what came of one stop, after half of the steps."""
        if self._stop is not None:
            return self.point(Place.BY_ITSELF, None)
        half = self.point(Place.BETWEEN, max(1, self.steps // 2))
        at = half.place is Place.BETWEEN and half.resumed_after == half.stopped_after
        return structs.replace(half, place=Place.AT) if at else half

    def points(self) -> Iterator[ResumedPoint]:
        """Yield what came of stops between two checkpoints, right after one, and before the first one."""
        if self._stop is not None:
            yield self.point(Place.BY_ITSELF, None)
            return
        half = self.point(Place.BETWEEN, max(1, self.steps // 2))
        yield from sorted(self._around(half), key=lambda point: list(Place).index(point.place))

    def _around(self, half: ResumedPoint) -> Iterator[ResumedPoint]:
        """Yield a first point by the place where it turned out to be, then those that are missing."""
        after, stopped = half.resumed_after, half.stopped_after
        if after is None or half.too_late or half.stopping:
            yield half
            return
        if after == 0:  # there was no checkpoint by then
            yield structs.replace(half, place=Place.BEFORE)
            if self.steps - 1 > stopped:
                late = self.point(Place.BETWEEN, self.steps - 1)
                at = late.place is Place.BETWEEN and late.resumed_after == late.stopped_after
                yield structs.replace(late, place=Place.AT) if at else late
            return
        saved_when_stopped = half.place is Place.WHEN_STOPPED
        if after < stopped:
            yield half
            overshot = stopped - max(1, self.steps // 2)  # a script that catches the signal may finish its step
            yield structs.replace(self.point(Place.AT, max(1, after - overshot)), place=Place.AT)
        else:
            later = self.point(Place.BETWEEN, stopped + 1) if stopped + 1 < self.steps else half
            between = later.resumed_after != later.stopped_after  # otherwise each step has a checkpoint
            saved_when_stopped = saved_when_stopped and not between
            yield half if saved_when_stopped else structs.replace(half, place=Place.AT)
            if between:
                yield later
        if after > 1:
            first = self.point(Place.BEFORE, 1)
            if not first.resumed_after or (saved_when_stopped and first.place is Place.WHEN_STOPPED):
                yield first

    def point(self, place: Place, after: int | None) -> ResumedPoint:
        """Stop after a step, by itself if that is None, resume, and return what came of it."""
        self._number += 1
        tried = self._try(after)
        self._asked[tried.step] = after
        uninterrupted, stopped, again = self._uninterrupted, tried.stopped, tried.resumed
        saved = after is not None and tried.in_order and tried.after == tried.step < uninterrupted.run.steps
        point = ResumedPoint(
            place=Place.WHEN_STOPPED if saved else place,
            status=ResumeStatus.UNUSABLE,
            stopped_after=tried.step,
            steps=uninterrupted.run.steps,
            resumed_after=tried.after,
            resumed_steps=max((len(resumed.steps_of(part)) for part in again.record.parts), default=0),
            uninterrupted=uninterrupted.run.ranks,
            resumed=again.run.ranks,
        )
        if not _stopped(stopped.run):
            return structs.replace(point, errors=stopped.run.errors, stopping=True)
        if stopped.run.steps >= uninterrupted.run.steps:
            return structs.replace(point, too_late=True)
        if again.run.status is not Status.OK:
            return structs.replace(point, errors=again.run.errors)
        if tried.after == 0 and point.resumed_steps >= uninterrupted.run.steps:
            return structs.replace(point, status=ResumeStatus.ANEW)
        if not uninterrupted.run.has_weights:
            return point
        if resumed.same_end(uninterrupted.run, again.run, self._pairs(tried)):
            return structs.replace(point, status=ResumeStatus.MATCHES)
        return self._explained(structs.replace(point, status=ResumeStatus.DIFFERS), tried)

    def restored(self, points: Sequence[ResumedPoint]) -> Restored | None:
        """Return the change with which the resumed runs that differ match, or differ later; None if there is none."""
        stops = [one for one in points if one.status is ResumeStatus.DIFFERS]
        read = [file for one in stops for file in one.checkpoints]
        change = restore.proposal([lost for one in stops for lost in one.lost], read, self._settings.cwd)
        left: list[Difference] = []
        for one in stops if change is not None else ():
            self._number += 1
            tried = self._try(self._asked[one.stopped_after], change)
            after, pairs, before = tried.after, self._pairs(tried), one.first_difference
            went_on = _stopped(tried.stopped.run) and tried.resumed.run.status is Status.OK
            if not (went_on and after and after == one.resumed_after):  # one that begins anew restored nothing
                return None
            if resumed.same_end(self._uninterrupted.run, tried.resumed.run, pairs):
                continue
            firsts = [resumed.first_difference(*pair, after, rank) for rank, pair in enumerate(pairs)]
            first = min((one for one in firsts if one is not None), key=lambda one: one.order, default=None)
            if first is None or before is None or first.order <= before.order:
                return None
            left.append(first)
        if change is None or not stops:
            return None
        return Restored(
            what=change.what,
            diff=change.diff(),
            stops=len(stops),
            matching=len(stops) - len(left),
            first_difference=next(iter(left), None),
        )

    def _pairs(self, tried: _Tried) -> list[tuple[Training, Training]]:
        return [*zip(self._uninterrupted.record.trainings, tried.resumed.record.trainings, strict=False)]

    def _try(self, after: int | None, change: restore.Proposal | None = None) -> _Tried:
        stop = {wire.ENV_STOP: str(after)} if after is not None else {}
        first = self._spec(self._stop or self._settings.target, "stopped", stop)
        then = self._spec(self._resume, "resumed", {wire.ENV_HELD: "1"})
        with self._runner.space.with_copy(first.copy_name, first.slot.name).fresh():
            if change is not None:
                (first.cwd / change.file).write_bytes(change.after.data)
            stopped = self._run(first, carry_on=True)
            again = self._run(then, carry_on=True)
        wholes, parts = self._uninterrupted.record.trainings, again.record.trainings
        in_order = any(process.ended for process in stopped.processes if process.trained)
        step = stopped.run.steps if after is None or in_order else min(after, stopped.run.steps)
        where = resumed.resumed_after(wholes[0], parts[0], step) if wholes and parts else None
        return _Tried(stopped, again, step, where, first.cwd, in_order)

    def _explained(self, point: ResumedPoint, tried: _Tried) -> ResumedPoint:
        """Return a point at which results differ with what was lost, as one run more shows what was held then."""
        read, files = resumed.checkpoints(tried.stopped.record, tried.resumed.processes, tried.cwd)
        point = structs.replace(point, checkpoints=files)
        if tried.after is None:
            return point
        step = str(tried.after + 1)
        recorded = self._run(
            self._spec(self._settings.target, "held", {wire.ENV_HELD: step, wire.ENV_STOP: step}), carry_on=False
        )
        for rank, (uninterrupted, again) in enumerate(self._pairs(tried)):
            first = resumed.first_difference(uninterrupted, again, tried.after, rank)
            ours = resumed.held_by(recorded.processes, uninterrupted) if self._repeats(recorded, tried.after) else None
            both = resumed.Resumed(
                uninterrupted, again, tried.after, ours, resumed.held_by(tried.resumed.processes, again), tuple(read)
            )
            lost = both.lost(first)
            if lost or first is not None:
                return structs.replace(point, first_difference=first, lost=lost)
        return point

    def _repeats(self, recorded: Result, after: int) -> bool:
        """Whether a run more did what the uninterrupted one did up to a step, so that what it held counts."""
        difference = comparer.first_difference(self._uninterrupted.record, recorded.record, through=after, shared=True)
        return difference is None or difference.stage is Stage.STEPS

    def _run(self, spec: RunSpec, *, carry_on: bool) -> Result:
        self.runs += 1
        return self._runner.run(self._number, spec, Limits(), carry_on=carry_on)

    def _spec(self, target: Target, name: str, variables: dict[str, str]) -> RunSpec:
        recipe = structs.replace(self._settings.recipes[0], name=name)
        refused = refusals.refused(recipe.flags, target)
        settings = replace(self._settings, target=target)
        spec = plan_group(settings, recipe, self._runner.space, refused).spec(1)
        folder = spec.folder.with_name(str(self._number))
        return replace(spec, folder=folder, env={**spec.env, **variables})


def _stopped(run: Run) -> bool:
    """Whether a run ended as it was to: by itself, or by the signal that it sent itself."""
    by_signal = any(isinstance(error, Killed) and error.signal == "SIGTERM" for error in run.errors)
    return run.status in (Status.OK, Status.STOPPED) or by_signal or run.exit_code == 143


# Run the uninterrupted runs, then each stop.


@dataclass(frozen=True)
class ResumeRequest:
    """What to stop and resume: the target of ``settings``, or ``stop``, and the target that goes on."""

    settings: Settings
    resume: Target
    stop: Target | None = None


class Resumer:
    """Stops and resumes one training. After an interruption, ``result`` has what finished before it."""

    def __init__(self, request: ResumeRequest, launcher: Launcher, observer: Observer | None = None) -> None:
        self._request, self._launcher, self._observer = request, launcher, observer or Observer()
        self._auditor = Auditor(request.settings, launcher, self._observer)
        self._audit: Audit | None = None
        self._points: list[ResumedPoint] = []
        self._restored: Restored | None = None
        self._runs = 0

    def run(self) -> Resumption:
        """Run the training uninterrupted, then stop and resume it at each point."""
        settings = self._request.settings
        self._audit = self._auditor.run()
        group = self._audit.groups[0]
        stops = stops_of(settings, self._launcher, self._observer, group, self._request.resume, self._request.stop)
        if stops is not None:
            for point in stops.points():
                self._points.append(point)
                self._runs = stops.runs
                store.save(settings.out, self.result())
            self._restored = stops.restored(self._points)
            self._runs = stops.runs
        return self.result()

    def result(self, interrupted: bool = False) -> Resumption:
        """Return what is known so far."""
        audit = self._auditor.result(interrupted)
        fields = {name: getattr(audit, name) for name in structs.asdict(audit)}
        uninterrupted = sum(len(group.runs) for group in audit.groups)
        return Resumption(
            **{**fields, "verdict": self._verdict(audit), "next_steps": (), "ended": now()},
            resume=self._request.resume.words,
            stop=self._request.stop.words if self._request.stop is not None else (),
            points=tuple(self._points),
            restored=self._restored,
            total_runs=uninterrupted + self._runs,
        )

    def _verdict(self, audit: Audit) -> Verdict:
        statuses = {point.status for point in self._points}
        if audit.verdict is not Verdict.DETERMINISTIC:
            return Verdict.INCONCLUSIVE
        if ResumeStatus.DIFFERS in statuses:
            return Verdict.NONDETERMINISTIC
        tested = [point for point in self._points if point.place is not Place.BEFORE]
        matches = bool(tested) and all(point.status is ResumeStatus.MATCHES for point in tested)
        return Verdict.DETERMINISTIC if matches else Verdict.INCONCLUSIVE
