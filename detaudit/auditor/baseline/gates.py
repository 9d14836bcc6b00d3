"""The gates of a check: a training is repeatable, it is the same as its baseline, it survives a stop."""

import math

from msgspec.structs import replace

from detaudit.auditor.baseline import recordings
from detaudit.auditor.evidence import environment
from detaudit.auditor.judge import comparer, localize
from detaudit.model import (
    Difference,
    Gate,
    GateDetail,
    GateName,
    GateStatus,
    Group,
    LikelyCause,
    Number,
    Recording,
    Run,
    Stage,
    Status,
    Verdict,
    as_number,
)
from detaudit.model.check import (
    DiffersFromBaseline,
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
    StartedOver,
    StoppedTooLate,
    StopUnusable,
)
from detaudit.model.reasons import OutputsOpen
from detaudit.recipe.project import NamedAudit


def repeatable(group: Group) -> Gate:
    """Return whether the runs of a group are bit-identical."""
    if group.verdict is Verdict.DETERMINISTIC:
        return _gate(GateName.REPEATABLE, GateStatus.PASSED, RunsMatch(runs=group.compared, through=group.through))
    if group.verdict is Verdict.INCONCLUSIVE:
        return _gate(GateName.REPEATABLE, GateStatus.INCONCLUSIVE, RunsInconclusive(reason=group.reason))
    found = group.first_difference
    detail = RunsGaveDifferentResults(
        runs=group.compared, distinct_results=group.distinct_results, first_difference=found
    )
    return _gate(GateName.REPEATABLE, GateStatus.FAILED, detail, first_difference=found and found.difference)


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
    requested = environment.changes(recordings.asked(then), recordings.asked(now))
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


def _from_baseline(
    audit: NamedAudit, then: Recording, now: Recording, difference: Difference, changed: tuple[str, ...]
) -> DiffersFromBaseline:
    last = comparer.last_equal_step(then.run, now.run, difference)
    shared = [stage for stage in then.run.stages if stage in now.run.stages]
    tolerance = audit.loss_tolerance if changed else None
    explanation = localize.of_difference(difference, shared)
    if changed:
        explanation = localize.in_changed_environment(explanation)
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
        return difference.output.where
    return difference.site if difference.stage in (Stage.ARTIFACT, Stage.RETURNED) else None


def same_after_resume(group: Group, stopped: Run, resumed: Run, trained: int) -> Gate:
    """Return whether a run that was stopped and resumed ends as the uninterrupted ones of ``group`` do.

    ``trained`` is the number of steps of the resumed run, which may continue counting from where the other stopped.
    """
    name, whole = GateName.RESUME, group.first_finished
    problem = _no_resume(group, whole, stopped, resumed, trained)
    if whole is None or problem is not None:
        return _gate(name, GateStatus.INCONCLUSIVE, problem or RunsMustMatch())
    if comparer.same_end(resumed.ranks, whole.ranks):
        matches = ResumeMatches(stopped_after=stopped.steps, steps=whole.steps, resumed_steps=trained)
        return _gate(name, GateStatus.PASSED, matches)
    differs = ResumeDiffers(
        stopped_after=stopped.steps,
        steps=whole.steps,
        resumed_steps=trained,
        uninterrupted=whole.ranks,
        resumed=resumed.ranks,
    )
    return _gate(name, GateStatus.FAILED, differs)


def _no_resume(group: Group, whole: Run | None, stopped: Run, resumed: Run, trained: int) -> GateDetail | None:
    """Return why a resume cannot be judged, None if it can."""
    if whole is None or group.verdict is not Verdict.DETERMINISTIC:
        return RunsMustMatch()
    if stopped.status not in (Status.OK, Status.STOPPED):
        return StopUnusable(errors=stopped.errors)
    if stopped.steps >= whole.steps:
        return StoppedTooLate(steps=whole.steps)
    if resumed.status is not Status.OK:
        return ResumeUnusable(errors=resumed.errors)
    if trained >= whole.steps:
        return StartedOver(resumed_steps=trained)
    return None if whole.has_weights else NoWeights()


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
