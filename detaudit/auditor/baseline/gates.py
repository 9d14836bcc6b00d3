"""The gates of a check: a training is repeatable, it is what it was, it survives a stop."""

import math
from collections.abc import Sequence

from detaudit.auditor.baseline import recordings
from detaudit.auditor.evidence import environment
from detaudit.auditor.judge import comparer, localize
from detaudit.model import (
    Difference,
    Gate,
    GateName,
    GateStatus,
    Group,
    Number,
    RankRecord,
    Recording,
    Run,
    Status,
    Verdict,
    digits,
)
from detaudit.recipe.project import NamedAudit


def repeatable(group: Group) -> Gate:
    """Return whether the runs of a group are equal, bit for bit."""
    if group.verdict is Verdict.DETERMINISTIC:
        return _gate(GateName.REPEATABLE, GateStatus.PASSED, f"{group.compared} runs, all bit-identical")
    if group.verdict is Verdict.INCONCLUSIVE:
        return _gate(GateName.REPEATABLE, GateStatus.UNKNOWN, group.reason or "nothing to compare")
    found = group.divergence
    where = f"; from step {found.step} on, stage {found.stage}: {found.cause}" if found else ""
    message = f"{group.compared} runs, {group.distinct} different results{where}"
    differs = found and Difference(rank=found.rank, step=found.step, stage=found.stage, site=found.site)
    return _gate(GateName.REPEATABLE, GateStatus.FAILED, message, differs=differs)


def same_as_baseline(audit: NamedAudit, group: Group, now: Recording | None, then: Recording | None) -> Gate:
    """Return whether what was trained is what the baseline holds."""
    name = GateName.BASELINE
    if then is None:
        return _gate(name, GateStatus.UNKNOWN, "there is no baseline yet; `detaudit check --update` writes it")
    if now is None or group.verdict is not Verdict.DETERMINISTIC:
        return _gate(name, GateStatus.UNKNOWN, "only runs that are equal to each other can be compared with it")
    asked = environment.changes(recordings.asked(then), recordings.asked(now))
    changed = (*asked, *environment.changes(then.environment, now.environment))
    names = ", ".join(change.name for change in changed)
    if comparer.same(then.run, now.run):
        although = f", although something changed: {names}" if changed else ""
        return _gate(name, GateStatus.PASSED, f"equal, bit for bit{although}", environment=changed)
    differs = comparer.first_difference(then.run, now.run, shared=True)
    where = _since(then, now, differs) if differs else "it differs"
    if not changed:
        return _gate(name, GateStatus.FAILED, f"{where}; the environment is the baseline's", differs=differs)
    apart = _apart(then, now)
    if audit.loss_tolerance is not None and apart <= audit.loss_tolerance:
        message = (
            f"{where}; but {names} changed, and the final losses agree within {audit.loss_tolerance:g} ({apart:.3g})"
        )
        return _gate(name, GateStatus.PASSED, message, differs=differs, environment=changed)
    far = f"; the final losses are {apart:.3g} apart" if audit.loss_tolerance is not None else ""
    message = f"{where}; but {names} changed, so bits may differ{far}"
    blocks = audit.policy == "fail"
    return _gate(name, GateStatus.INCOMPARABLE, message, differs=differs, environment=changed, blocks=blocks)


def same_after_resume(group: Group, stopped: Run, resumed: Run, trained: int) -> Gate:
    """Return whether a run that was stopped and resumed ends as the uninterrupted ones of ``group`` do.

    ``trained`` is how many steps the resumed one trained; it may go on counting where the other stopped.
    """
    name = GateName.RESUME
    whole = group.whole
    problem = _no_resume(group, whole, stopped, resumed, trained)
    if whole is None or problem:
        return _gate(name, GateStatus.UNKNOWN, problem)
    how = f"stopped after step {stopped.steps} of {whole.steps}, resumed for {trained}"
    if comparer.same_end(resumed.ranks, whole.ranks):
        return _gate(name, GateStatus.PASSED, f"{how}: it ends as the whole runs do, bit for bit")
    a, b = (_fingerprints(run.ranks) for run in (whole, resumed))
    return _gate(name, GateStatus.FAILED, f"{how}: it ends otherwise; whole: {a}; resumed: {b}")


def _no_resume(group: Group, whole: Run | None, stopped: Run, resumed: Run, trained: int) -> str:
    """Return why nothing can be said of a resume, ``""`` if it can."""
    if whole is None or group.verdict is not Verdict.DETERMINISTIC:
        return "only runs that are equal to each other can be compared with a resumed one"
    if stopped.status not in (Status.OK, Status.STOPPED):
        return f"the run that was to stop: {stopped.problem}"
    if stopped.steps >= whole.steps:
        return f"the run had done all its {whole.steps} steps before it stopped: let `stop` name one that stops early"
    if resumed.status is not Status.OK:
        return f"the resumed run: {resumed.problem}"
    if trained >= whole.steps:
        return f"the resumed run trained {trained} steps, no fewer than a whole run: it began anew"
    return "" if any(rank.digest for rank in whole.ranks) else "no weights were seen"


def _gate(name: GateName, status: GateStatus, message: str, *, blocks: bool = True, **more: object) -> Gate:
    return Gate(name=name, status=status, blocks=blocks and status is not GateStatus.PASSED, message=message, **more)  # type: ignore[arg-type]


def _since(then: Recording, now: Recording, differs: Difference) -> str:
    rank = f", rank {differs.rank}" if differs.rank else ""
    until = comparer.last_equal_step(then.run, now.run, differs)
    equal = f" (equal at step {until})" if until is not None and until < differs.step - 1 else ""
    shared = [stage for stage in then.run.stages if stage in now.run.stages]
    cause = localize.cause(differs.stage, shared)
    return f"not the baseline from step {differs.step}{rank} on{equal}, stage {differs.stage}: {cause}"


def _apart(then: Recording, now: Recording) -> float:
    """Return how far the final losses are apart, in parts of the baseline's; infinite where that cannot be told."""
    ours, theirs = then.run.parts, now.run.parts
    distances = [_distance(a.last_loss, b.last_loss) for a, b in zip(ours, theirs, strict=False)]
    return max(distances, default=math.inf) if len(ours) == len(theirs) else math.inf


def _distance(a: Number, b: Number) -> float:
    if not isinstance(a, float | int) or not isinstance(b, float | int):
        return math.inf
    return 0.0 if a == b else abs(a - b) / abs(a) if a else math.inf


def _fingerprints(ranks: Sequence[RankRecord]) -> str:
    return ", ".join(f"sum {digits(rank.sum_of_weights)}, loss {digits(rank.final_loss)}" for rank in ranks)
