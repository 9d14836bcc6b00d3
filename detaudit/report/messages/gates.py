"""What a gate of a check found, and what changed in its baseline."""

from collections.abc import Sequence
from typing import TypeAlias

from detaudit.compat import assert_never
from detaudit.model import GateDetail, LockChange, RankRecord, Stage, digits
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
from detaudit.model.fact import count
from detaudit.report.messages import differences, explanations, problems
from detaudit.report.messages.wording import both, brief, every, shortened

MOST_NAMES = 5

_Runs: TypeAlias = RunsMatch | RunsGaveDifferentResults | RunsInconclusive | RunsDifferedEarlier | RunsMustMatch
_Baseline: TypeAlias = NoBaseline | MatchesBaseline | DiffersFromBaseline
_Resume: TypeAlias = (
    ResumeMatches | ResumeDiffers | StopUnusable | StoppedTooLate | ResumeUnusable | StartedOver | NoWeights
)


def sentence(found: GateDetail) -> str:
    """Return what a gate found."""
    if isinstance(found, _Runs):
        return _runs(found)
    if isinstance(found, _Baseline):
        return _baseline(found)
    return _resume(found)


def _runs(found: _Runs) -> str:
    match found:
        case RunsMatch(runs=runs, through=through):
            return f"{every(runs, 'run')} are bit-identical{_through(through)}"
        case RunsGaveDifferentResults():
            return _different_results(found)
        case RunsInconclusive(reason=reason):
            return problems.reason(reason) if reason else "nothing to compare"
        case RunsDifferedEarlier(runs=runs, folder=folder):
            return (
                f"{every(runs, 'run')} are bit-identical, but runs of the same code differed earlier ({folder}); write "
                "the baseline all the same with --force"
            )
        case RunsMustMatch():
            return "not compared: the runs must match each other first"
        case _:
            assert_never(found)


def _different_results(found: RunsGaveDifferentResults) -> str:
    results = f"{count(found.runs, 'run')} gave {count(found.distinct_results, 'different result')}"
    first = found.first_difference
    if first is None:
        return results
    where = differences.where_of(first)
    return f"{results}; first difference {where}: {explanations.sentence(first.stage, first.explanation)}"


def _baseline(found: _Baseline) -> str:
    match found:
        case NoBaseline():
            return "no baseline yet; create it with `detaudit check --update`"
        case MatchesBaseline(changed=(), through=through):
            return f"bit-identical{_through(through)}"
        case MatchesBaseline(changed=changed, through=through):
            return f"bit-identical{_through(through)}, although {_names(changed)} changed"
        case DiffersFromBaseline():
            return f"differs from the baseline{_since(found)}; {_changed(found)}"
        case _:
            assert_never(found)


def _through(step: int | None) -> str:
    return f" through step {step:,}, the last one compared" if step is not None else ""


def _since(found: DiffersFromBaseline) -> str:
    if found.step is None or found.stage is None:
        return ""
    stage = Stage(found.stage)
    why = f": {explanations.sentence(stage, found.explanation)}" if found.explanation else ""
    match stage:
        case Stage.ARTIFACT | Stage.SAVED | Stage.PRINTED | Stage.EXIT | Stage.RETURNED:
            return f" {differences.where(0, stage, found.site)}{why}" if found.site else why
        case Stage.UPDATE | Stage.STATE | Stage.OUTPUT if found.at_end:
            start = " at the end"
        case _:
            rank = f"rank {found.rank}, " if found.rank else ""
            last = f"; last equal: step {found.last_equal_step:,}" if found.last_equal_step is not None else ""
            start = f" from {f'step {found.step:,}' if found.step else 'the start'} on ({rank}{stage}{last})"
    return start + why


def _changed(found: DiffersFromBaseline) -> str:
    if not found.changed:
        return "the environment is unchanged"
    if found.tolerance is None:
        return f"{_names(found.changed)} changed, which may change results"
    if not isinstance(found.loss_distance, float | int):
        return f"{_names(found.changed)} changed, and the final losses cannot be compared"
    distance, tolerance = brief(found.loss_distance), brief(found.tolerance)
    names = _names(found.changed)
    return f"{names} changed, and the final losses differ by {distance} (relative, tolerance {tolerance})"


def _names(names: Sequence[str]) -> str:
    return both(names) if len(names) <= MOST_NAMES else shortened(names, most=MOST_NAMES)


def _resume(found: _Resume) -> str:
    match found:
        case ResumeMatches():
            return f"{_stopped(found)}: bit-identical to an uninterrupted run"
        case ResumeDiffers(uninterrupted=whole, resumed=resumed):
            results = f"uninterrupted: {_results(whole)}; resumed: {_results(resumed)}"
            return f"{_stopped(found)}: the result differs; {results}"
        case StopUnusable(errors=errors):
            return f"the run to be stopped was unusable: {problems.errors(errors)}"
        case StoppedTooLate(steps=steps):
            finished = f"the run finished all {count(steps, 'step')} before it could be stopped"
            return f"{finished}: set `stop` to a command that stops early"
        case ResumeUnusable(errors=errors):
            return f"the resumed run was unusable: {problems.errors(errors)}"
        case StartedOver(resumed_steps=steps):
            trained = f"the resumed run trained {count(steps, 'step')}"
            return f"{trained}, at least as many as an uninterrupted run: it started over"
        case NoWeights():
            return "no weights were recorded"
        case _:
            assert_never(found)


def _stopped(found: ResumeMatches | ResumeDiffers) -> str:
    stopped = f"stopped after step {found.stopped_after:,} of {found.steps:,}"
    return f"{stopped}, resumed for {count(found.resumed_steps, 'step')}"


def _results(ranks: Sequence[RankRecord]) -> str:
    several = len(ranks) > 1
    return ", ".join(
        f"{f'rank {rank.rank} ' if several else ''}sum of weights {digits(rank.sum_of_weights)}, "
        f"final loss {digits(rank.final_loss)}"
        for rank in ranks
    )


def lock_change(found: LockChange) -> str:
    """Return what changed in a baseline."""
    if found.name:
        return f"{found.audit}: {found.name}: {found.old or 'none'} → {found.new or 'none'}"
    if not found.new_ranks:
        return f"{found.audit}: different steps or stages recorded"
    if not found.old_ranks:
        return f"{found.audit}: new baseline, {_recorded(found.new_ranks)}"
    return f"{found.audit}: {_recorded(found.old_ranks)} → {_recorded(found.new_ranks)}"


def _recorded(ranks: Sequence[RankRecord]) -> str:
    first = ranks[0]
    digest, loss = (first.digest or "-")[:12], digits(first.final_loss)
    several = f"; {count(len(ranks), 'rank')}" if len(ranks) > 1 else ""
    return f"digest {digest}, final loss {loss}, {count(first.steps, 'step')}{several}"
