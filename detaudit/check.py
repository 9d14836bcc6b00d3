"""The job behind ``check``: each audit of a project, one by one, and the gates that judge it."""

import dataclasses
import math
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from detaudit import advice, baseline, store
from detaudit.against import commits
from detaudit.against.commits import Commit
from detaudit.against.sides import AgainstRequest, AuditOfSide
from detaudit.audit import Auditor
from detaudit.config.flags import SEARCHED, load_catalogue
from detaudit.config.project import NamedAudit
from detaudit.errors import DetauditError
from detaudit.judge import comparer, group
from detaudit.launch import Launcher
from detaudit.launch.plan import Settings
from detaudit.launch.target import Target
from detaudit.model import (
    SCHEMA_VERSION,
    Check,
    CheckedAudit,
    CheckVerdict,
    Comparison,
    ComparisonVerdict,
    Difference,
    Gate,
    GateDetail,
    GateName,
    GateStatus,
    Group,
    LikelyCause,
    LockChange,
    NextStep,
    Number,
    Purpose,
    Recording,
    Stage,
    Verdict,
    as_number,
)
from detaudit.model.against import Attribution, OfCode, OfEnvironment, Untold
from detaudit.model.check import (
    CommitInconclusive,
    DiffersFromBaseline,
    DiffersFromCommit,
    MatchesBaseline,
    NoBaseline,
    NoWeights,
    ResumeDiffers,
    ResumeMatches,
    ResumeUnusable,
    RunsDifferedEarlier,
    RunsGaveDifferentResults,
    RunsInconclusive,
    RunsMatch,
    RunsMustMatch,
    SameAsCommit,
    StartedOver,
    StoppedTooLate,
    StopUnusable,
)
from detaudit.model.fact import now
from detaudit.model.problems import EarlierRunsDiffer, OutputsOpen
from detaudit.model.resume import ResumedPoint, ResumeStatus
from detaudit.model.sources import COMPLETION, SEEDING
from detaudit.model.warnings import BaselineNotWritten, BaselineWithoutAudit
from detaudit.resume import stops_of
from detaudit.runner import MakeRunner, Observer, Runner
from detaudit.runs import environment

# The gates of a check: a training is repeatable, it is the same as its baseline, it survives a stop.


def repeatable(group: Group) -> Gate:
    """Return whether the runs of a group are bit-identical."""
    if group.verdict is Verdict.DETERMINISTIC:
        return _gate(GateName.REPEATABLE, GateStatus.PASSED, RunsMatch(runs=group.compared, through=group.through))
    if group.verdict is Verdict.INCONCLUSIVE:
        return _gate(GateName.REPEATABLE, GateStatus.INCONCLUSIVE, RunsInconclusive(reason=group.reason))
    first_difference = group.first_difference
    detail = RunsGaveDifferentResults(
        runs=group.compared, distinct_results=group.distinct_results, first_difference=first_difference
    )
    return _gate(
        GateName.REPEATABLE,
        GateStatus.FAILED,
        detail,
        first_difference=first_difference and first_difference.difference,
    )


def differed_earlier(group: Group, folder: str) -> Gate:
    """Return that the runs of a group match, and those of an earlier audit of the same code did not."""
    detail = RunsDifferedEarlier(runs=group.compared, folder=folder)
    return _gate(GateName.REPEATABLE, GateStatus.INCONCLUSIVE, detail)


def same_as_baseline(audit: NamedAudit, group: Group, now: Recording | None, then: Recording | None) -> Gate:
    """Return whether the training gave what the baseline has."""
    name = GateName.BASELINE
    if now is None or group.verdict is not Verdict.DETERMINISTIC:
        return _gate(name, GateStatus.INCONCLUSIVE, RunsMustMatch())
    if then is None:
        return _gate(name, GateStatus.INCONCLUSIVE, NoBaseline())
    requested = environment.changes(baseline.asked(then), baseline.asked(now))
    changes = (*requested, *environment.changes(then.environment, now.environment))
    names = tuple(change.name for change in changes)
    difference = comparer.first_difference(then.run, now.run, shared=True)
    undecided = comparer.open_output(then.run, now.run) if difference is None else None
    if undecided is not None:
        reason = RunsInconclusive(reason=OutputsOpen(first=undecided))
        return _gate(name, GateStatus.INCONCLUSIVE, reason, environment_changes=changes)
    if difference is None:
        return _gate(name, GateStatus.PASSED, _matches(then, now, names), environment_changes=changes)
    detail = _from_baseline(audit, then, now, difference, names)
    status, blocking = GateStatus.FAILED, True
    if changes:
        close = isinstance(detail.loss_distance, float) and detail.loss_distance <= (audit.loss_tolerance or 0.0)
        status = GateStatus.PASSED if close else GateStatus.INCOMPARABLE
        blocking = audit.policy == "fail"
    return _gate(name, status, detail, blocking=blocking, first_difference=difference, environment_changes=changes)


def _matches(then: Recording, now: Recording, changed: tuple[str, ...]) -> MatchesBaseline:
    through = min((step for side in (then, now) if (step := side.run.through) is not None), default=None)
    return MatchesBaseline(changed=changed, through=through)


def told(gate: Gate, attribution: Attribution | None) -> Gate:
    """Return an incomparable gate with what the commit of its baseline says; if the code is to blame, it failed."""
    if attribution is None or not isinstance(gate.detail, DiffersFromBaseline):
        return gate
    gate = replace(gate, detail=replace(gate.detail, told=attribution))
    return replace(gate, status=GateStatus.FAILED, blocking=True) if isinstance(attribution, OfCode) else gate


def same_as_commit(commit: str, comparison: Comparison) -> Gate:
    """Return whether the working tree gives what another commit gives."""
    name, first = GateName.COMMIT, comparison.first_difference
    if comparison.verdict is ComparisonVerdict.IDENTICAL:
        return _gate(name, GateStatus.PASSED, SameAsCommit(commit=commit, through=comparison.through))
    if comparison.verdict is ComparisonVerdict.INCONCLUSIVE or first is None:
        return _gate(name, GateStatus.INCONCLUSIVE, CommitInconclusive(commit=commit, doubts=comparison.doubts))
    last = comparison.last_equal_step
    detail = DiffersFromCommit(
        commit=commit,
        code=comparison.code,
        step=first.step,
        stage=first.stage,
        rank=first.rank,
        last_equal_step=last if last is not None and last < first.step - 1 else None,
        at_end=first.at_end,
        site=_site(first),
        explanation=comparison.explanation,
    )
    return _gate(name, GateStatus.FAILED, detail, first_difference=first)


def _from_baseline(
    audit: NamedAudit, then: Recording, now: Recording, difference: Difference, changed: tuple[str, ...]
) -> DiffersFromBaseline:
    last = comparer.last_equal_step(then.run, now.run, difference)
    shared = [stage for stage in then.run.stages if stage in now.run.stages]
    tolerance = audit.loss_tolerance if changed else None
    explanation = group.of_difference(difference, shared)
    if changed:
        explanation = group.in_changed_environment(explanation)
    if not changed and not difference.at_end:  # the runs match each other, so it is not a kernel or a race
        explanation = replace(explanation, likely=(LikelyCause.CODE,))
    return DiffersFromBaseline(
        step=difference.step,
        stage=difference.stage,
        rank=difference.rank,
        last_equal_step=last if last is not None and last < difference.step - 1 else None,
        at_end=difference.at_end,
        site=_site(difference),
        explanation=explanation,
        changed=changed,
        tolerance=tolerance,
        loss_distance=as_number(_loss_distance(then, now)) if tolerance is not None else None,
    )


def _site(difference: Difference) -> str | None:
    if difference.output is not None:
        return difference.output.name
    return difference.site if difference.stage in (Stage.ARTIFACT, Stage.RETURNED) else None


def same_after_resume(group: Group, point: ResumedPoint | None) -> Gate:
    """Return whether a run that was stopped and resumed ends as the uninterrupted ones of ``group`` do.

    There is no ``point`` if those do not match each other.
    """
    name = GateName.RESUME
    if point is None or group.verdict is not Verdict.DETERMINISTIC:
        return _gate(name, GateStatus.INCONCLUSIVE, RunsMustMatch())
    counts = {"stopped_after": point.stopped_after, "steps": point.steps, "resumed_steps": point.resumed_steps}
    if point.too_late:
        return _gate(name, GateStatus.INCONCLUSIVE, StoppedTooLate(steps=point.steps))
    if point.status is ResumeStatus.UNUSABLE and not point.errors:
        return _gate(name, GateStatus.INCONCLUSIVE, NoWeights())
    if point.status is ResumeStatus.UNUSABLE:
        unusable = StopUnusable if point.stopping else ResumeUnusable
        return _gate(name, GateStatus.INCONCLUSIVE, unusable(errors=point.errors))
    if point.status is ResumeStatus.ANEW:
        return _gate(name, GateStatus.INCONCLUSIVE, StartedOver(resumed_steps=point.resumed_steps))
    if point.status is ResumeStatus.MATCHES:
        return _gate(name, GateStatus.PASSED, ResumeMatches(**counts))
    differs = ResumeDiffers(
        **counts,
        uninterrupted=point.uninterrupted,
        resumed=point.resumed,
        lost=point.lost,
        checkpoints=point.checkpoints,
    )
    return _gate(name, GateStatus.FAILED, differs, first_difference=point.first_difference)


def _gate(name: GateName, status: GateStatus, detail: GateDetail, *, blocking: bool = True, **more: object) -> Gate:
    blocking = blocking and status is not GateStatus.PASSED
    return Gate(name=name, status=status, blocking=blocking, detail=detail, **more)  # type: ignore[arg-type]


def _loss_distance(then: Recording, now: Recording) -> float:
    """Return the distance of the final losses of runs that differ, relative to the baseline's; infinite without."""
    ours, theirs = ([part.last_loss for part in one.run.parts] for one in (then, now))
    return max(map(_relative, ours, theirs)) if len(ours) == len(theirs) else math.inf


def _relative(a: Number, b: Number) -> float:
    if not isinstance(a, float | int) or not isinstance(b, float | int):
        return math.inf
    return 0.0 if a == b else abs(a - b) / abs(a) if a else math.inf


# Run one check: run each audit that a project defines, and judge it at its gates.


@dataclass(frozen=True)
class CheckRequest:
    """One audit to run; ``resume`` is the target that continues after ``stop``, or after a kill.

    ``make_runner`` says where the runs are done; those of ``resume`` are always done on this machine. ``against`` is
    the commit that the working tree is compared with.
    """

    name: str
    audit: NamedAudit
    settings: Settings
    resume: Target | None = None
    stop: Target | None = None
    make_runner: MakeRunner = Runner
    against: Commit | None = None

    def without_history(self) -> "CheckRequest":
        """Return the same audit, to be judged without earlier ones."""
        return dataclasses.replace(self, settings=dataclasses.replace(self.settings, history=False))


class Checker:
    """Runs one check. After an interruption, ``result`` has what finished before it.

    An ``update`` writes no baseline of a training that differed in an earlier audit of the same code, unless it is to
    ``force`` that. ``defined`` are the names of all audits that the project has, also of those that are not checked.
    """

    def __init__(
        self,
        requests: Sequence[CheckRequest],
        command: tuple[str, ...],
        out: Path,
        lock: Path,
        update: bool,
        launcher: Launcher,
        observer: Observer,
        *,
        force: bool = False,
        defined: Collection[str] = (),
    ) -> None:
        self._requests = [one.without_history() if force else one for one in requests]
        self._command, self._out, self._lock, self._update = command, out, lock, update
        self._defined = {*defined, *(one.name for one in requests)}
        self._launcher, self._observer = launcher, observer
        self._started = now()
        self._baselines: Mapping[str, Recording] = baseline.read_lock(lock) if lock.exists() else {}
        self._audits: list[CheckedAudit] = []
        self._recordings: dict[str, Recording] = {}
        self._changes: tuple[LockChange, ...] = ()
        self._not_written: list[str] = []

    def run(self) -> Check:
        """Run every audit, one after another, and return the results of its gates."""
        store.prepare(self._out)
        for one in self._requests:
            self._observer.audit_started(one.name)
            if known := self._baselines.get(one.name):
                self._observer.last_step(known.run.steps)
            auditor = self._auditor(one)
            try:
                audit = auditor.run()
                recording = auditor.recording
                gates_ = self._gates(one, audit.groups[0], recording)
                if isinstance(auditor, AuditOfSide) and one.against is not None and auditor.comparison is not None:
                    gates_ = (*gates_, same_as_commit(one.against.name, auditor.comparison))
            except KeyboardInterrupt:
                self._audits.append(CheckedAudit(name=one.name, audit=auditor.result(interrupted=True), gates=()))
                raise
            self._audits.append(CheckedAudit(name=one.name, audit=audit, gates=gates_))
            passed = gates_[0].status is GateStatus.PASSED
            if recording is not None and audit.verdict is Verdict.DETERMINISTIC and passed:
                self._recordings[one.name] = recording
        self._keep()
        return self.result()

    def _auditor(self, one: CheckRequest) -> Auditor | AuditOfSide:
        if one.against is not None:
            return AuditOfSide(AgainstRequest(one.settings, one.against), self._launcher, self._observer)
        return Auditor(one.settings, self._launcher, self._observer, one.make_runner)

    def _told(self, one: CheckRequest, then: Recording | None) -> Attribution | None:
        """Return what the commit that wrote a baseline gives in this environment, None if it cannot be run here."""
        commit = _written_by(self._lock, one.name, then) if then is not None and one.make_runner is Runner else None
        if commit is None:
            return None
        settings = dataclasses.replace(one.settings, out=one.settings.out / "baseline")
        sides = AuditOfSide(AgainstRequest(settings, commit), self._launcher, self._observer)
        sides.run()
        comparison, name = sides.comparison, commit.hash[:10]
        if comparison is None or comparison.verdict is ComparisonVerdict.INCONCLUSIVE:
            return Untold(commit=name, doubts=comparison.doubts if comparison is not None else ())
        same = comparison.verdict is ComparisonVerdict.IDENTICAL
        return OfEnvironment(commit=name) if same else OfCode(commit=name)

    def _gates(self, one: CheckRequest, group: Group, recording: Recording | None) -> tuple[Gate, ...]:
        gates = [repeatable(group)]
        if self._update and isinstance(group.reason, EarlierRunsDiffer):
            gates = [differed_earlier(group, group.reason.folders[0])]
        if one.audit.baseline and not self._update:
            then = self._baselines.get(one.name)
            gate = same_as_baseline(one.audit, group, recording, then)
            incomparable = gate.status is GateStatus.INCOMPARABLE
            gates.append(told(gate, self._told(one, then)) if incomparable else gate)
        if one.resume is not None:
            stops = stops_of(one.settings, self._launcher, self._observer, group, one.resume, one.stop)
            gates.append(same_after_resume(group, stops.once() if stops is not None else None))
        return tuple(gates)

    def _keep(self) -> None:
        """Write the new baselines into the lock file."""
        rebased = {
            checked.name
            for checked, one in zip(self._audits, self._requests, strict=True)
            for gate in checked.gates
            if gate.status is GateStatus.INCOMPARABLE and one.audit.policy == "rebase"
        }
        names = {one.name for one in self._requests if one.audit.baseline} if self._update else rebased
        self._not_written = sorted(names - {*self._recordings})
        made = {name: baseline.thinned(self._recordings[name]) for name in sorted(names & {*self._recordings})}
        self._changes = tuple(
            change for name, new in made.items() for change in baseline.changes(name, self._baselines.get(name), new)
        )
        if self._changes:
            baseline.write_lock(self._lock, {**self._baselines, **made})

    def result(self, interrupted: bool = False) -> Check:
        """Return the check so far."""
        warnings = [replace(warning, audit=one.name) for one in self._audits for warning in one.audit.warnings]
        not_written = [BaselineNotWritten(audit=name) for name in self._not_written]
        orphans = [BaselineWithoutAudit(audit=name) for name in sorted({*self._baselines} - self._defined)]
        return Check(
            schema_version=SCHEMA_VERSION,
            command=self._command,
            verdict=_verdict(self._audits, complete=len(self._audits) == len(self._requests) and not interrupted),
            audits=tuple(self._audits),
            lock_file=advice.shown(self._lock),
            lock_changes=self._changes,
            warnings=(*dict.fromkeys(warnings), *not_written, *orphans),
            next_steps=tuple(self._next_steps()),
            interrupted=interrupted,
            started=self._started,
            ended=now(),
        )

    def _next_steps(self) -> Iterator[NextStep]:
        for checked, one in zip(self._audits, self._requests, strict=False):
            states = {gate.name: gate.status for gate in checked.gates}
            repeatable, baseline = states.get(GateName.REPEATABLE), states.get(GateName.BASELINE)
            if repeatable is GateStatus.FAILED:
                yield from self._after_difference(one, checked.audit.groups[0])
            if baseline in (GateStatus.FAILED, GateStatus.INCOMPARABLE):
                lock, out = (shlex.quote(advice.shown(path)) for path in (self._lock, one.settings.out))
                command = f"detaudit compare {lock}#{one.name} {out}"
                yield NextStep(command=command, purpose=Purpose.COMPARE_STEPS, audit=one.name)
            if repeatable is not GateStatus.PASSED:
                continue  # a baseline is only written of runs that match
            update = shlex.join(["detaudit", "check", one.name, *one.settings.jobs.options, "--update"])
            if baseline in (GateStatus.FAILED, GateStatus.INCOMPARABLE):
                yield NextStep(command=update, purpose=Purpose.ACCEPT_BASELINE, audit=one.name)
            if baseline is GateStatus.INCONCLUSIVE and one.name not in self._baselines:
                yield NextStep(command=update, purpose=Purpose.CREATE_BASELINE, audit=one.name)

    def _after_difference(self, one: CheckRequest, group: Group) -> Iterator[NextStep]:
        """Yield the commands that follow from runs that differ: a trace, and a bisection if a flag may fix it."""
        settings = one.settings
        (recipe,) = settings.recipes
        traced = advice.command(settings, *(recipe.options if recipe.flags else ()), verb="trace")
        yield NextStep(command=traced, purpose=Purpose.TRACE, audit=one.name)
        if flag_may_exist(group):
            bisected = advice.command(settings, verb="bisect")
            yield NextStep(command=bisected, purpose=Purpose.BISECT, audit=one.name)


def _written_by(lock: Path, name: str, baseline_: Recording) -> Commit | None:
    """Return the commit that wrote a baseline into the lock file, None if that is not known."""
    wrote = None
    for commit in commits.last_changes(lock):
        try:
            kept = baseline.read(commits.content(commit, lock)).get(name)
        except DetauditError:
            return wrote
        if kept != baseline_:
            return wrote
        wrote = commit
    return wrote


def flag_may_exist(group: Group) -> bool:
    """Whether a flag of the catalogue may make the runs of a group match.

    None does if all lines that were observed to differ pass a seed or an order of their own, which no flag overrides.
    """
    observed = [source for source in group.sources if not source.suspect]
    flags = [flag for flag in load_catalogue() if flag.action in SEARCHED and flag.id not in group.recipe.flags]
    return not observed or any(
        any(flag.matches.matches(source) for flag in flags) if source.kind in COMPLETION else source.kind not in SEEDING
        for source in observed
    )


def _verdict(checked: Sequence[CheckedAudit], *, complete: bool) -> CheckVerdict:
    blocking = {gate.status for one in checked for gate in one.gates if gate.blocking}
    if blocking & {GateStatus.FAILED, GateStatus.INCOMPARABLE}:
        return CheckVerdict.FAILED
    return CheckVerdict.INCONCLUSIVE if blocking or not complete else CheckVerdict.PASSED
