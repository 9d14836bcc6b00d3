"""Decides what is equal, and where two runs first differ: for audits, baselines, comparisons and traces alike.

Equal are the bits of the weights, of the buffers of models, of the losses and of what the recorder calls results
(pairing.RESULTS). Never a sum of floats, which may differ in the last place though every weight is the same. If all of
that is equal, what left the runs decides: files, printed text, the exit status (outputs/compare.py).
"""

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from detaudit.auditor.evidence.event_logs import Process
from detaudit.auditor.judge.pairing import RESULTS, Matched, also_at_end, end, pairs, results
from detaudit.auditor.judge.shared import in_blocks, shared_blocks
from detaudit.auditor.judge.sites import site
from detaudit.model import (
    FITTED,
    UNHOOKED,
    Difference,
    FinalState,
    OutputDifference,
    RankRecord,
    Replicas,
    RunRecord,
    Stage,
    Training,
    blocks,
    digits,
)
from detaudit.model.outputs import STDERR, STDOUT
from detaudit.outputs.compare import deciding, differences


def first_difference(
    a: RunRecord, b: RunRecord, *, through: int | None = None, shared: bool = False
) -> Difference | None:
    """Return the earliest step and stage at which two runs with different results differ, None if none do.

    ``through`` is the last step to compare; then neither the ends nor the number of steps count. ``shared`` compares
    only stages and steps that both recorded, as for a baseline that keeps some steps. Of a training that was cut, what
    follows is unknown and not compared.
    """
    found = _first_of_parts(a, b, through, shared)
    whole = through is None and a.through is None and b.through is None
    return found or (_first_output(a, b) if whole else None)


def _first_output(a: RunRecord, b: RunRecord) -> Difference | None:
    """Return where what left two runs differs and decides, None if it does not, or was not kept of both."""
    if a.outputs is None or b.outputs is None:
        return None
    return of_output(deciding(differences(a.outputs, b.outputs)))


def open_output(a: RunRecord, b: RunRecord) -> OutputDifference | None:
    """Return what left two runs and differs so that nobody can say whether their results do, None if nothing does."""
    if a.outputs is None or b.outputs is None:
        return None
    return next((one for one in differences(a.outputs, b.outputs) if one.open), None)


def of_output(found: OutputDifference | None) -> Difference | None:
    """Return a difference of what left two runs as one of the runs."""
    if found is None:
        return None
    stage = Stage.PRINTED if found.path in (STDOUT, STDERR) else Stage.SAVED
    return Difference(rank=0, step=0, stage=stage, site=found.path, output=found)


def _first_of_parts(a: RunRecord, b: RunRecord, through: int | None, shared: bool) -> Difference | None:
    matched = pairs(a, b)
    complete = not _lacks(a, b, matched) and not _lacks(b, a, matched)
    differing = [pair for pair in matched if _results_differ(pair, _limit(pair, through), shared)]
    if complete and not differing:
        return None
    # If the results of all trainings match, what explains a training explains nothing.
    beside = bool(differing) and all(pair.a.framework in UNHOOKED for pair in differing)
    chosen = differing if beside else matched
    found = [difference for pair in chosen if (difference := _first(pair, _limit(pair, through), shared))]
    if not complete:
        missing = min(len(a.trainings), len(b.trainings))
        found.append(Difference(rank=missing, step=0, stage=Stage.STEPS))
    first = min(found, key=lambda difference: difference.order)
    same = (one.rank for one in found if one is not first and one.order == first.order)
    return replace(first, also=tuple(rank for rank in same if _of_one_job(a, first.rank, rank)))


def _of_one_job(a: RunRecord, rank: int, other: int) -> bool:
    """Whether two parts may be ranks of one training: a fit is none, nor what needs no hook."""
    frameworks = {part.framework for part in (*a.trainings[rank : rank + 1], *a.trainings[other : other + 1])}
    return len(frameworks) == 1 and frameworks.isdisjoint(FITTED)


def _lacks(a: RunRecord, b: RunRecord, matched: Sequence[Matched]) -> bool:
    """Whether ``a`` lacks a training of ``b``, or what ``b`` shows without a hook.

    One that was ended says nothing of trainings that begin later, and one that was stopped within a training nothing of
    what follows it, such as the value that a test returns.
    """
    if a.through is not None:
        return False
    if any(part.final is None for part in a.trainings):
        return sum(pair.a.framework not in UNHOOKED for pair in matched) < len(b.trainings)
    return len(matched) < len(b.parts)


def _limit(pair: Matched, through: int | None) -> int | None:
    """Return the last step to compare of two trainings, None if their ends are compared too."""
    steps = [part.steps for part in (pair.a, pair.b) if part.cut]
    return min(steps if through is None else [*steps, through], default=None)


def same(a: RunRecord, b: RunRecord) -> bool:
    """Whether two recordings have the same results, as far as both recorded the same steps."""
    return first_difference(a, b, shared=True) is None


def same_end(a: Sequence[RankRecord], b: Sequence[RankRecord]) -> bool:
    """Whether two runs ended with the same weights, losses and outputs, however many steps each trained.

    What they saved does not count: a run that was resumed did not save what it had saved before.
    """
    ours, theirs = (
        [(rank.digest, rank.state_digest, rank.output_digest, digits(rank.final_loss)) for rank in ranks]
        for ranks in (a, b)
    )
    return ours == theirs


def last_equal_step(a: RunRecord, b: RunRecord, difference: Difference) -> int | None:
    """Return the last step up to a difference at which its stage is equal on both sides, None if there is none.

    If one side has no such step, or the stage was recorded at the end only, any result counts.
    """
    pair = next((pair for pair in pairs(a, b) if pair.rank == difference.rank), None)
    if pair is None or (difference.stage is Stage.STEPS and difference.step == 0):
        return None
    unrecorded = difference.at_end and not any(difference.stage in part.digests for part in pair[1:])
    seldom = difference.stage in (Stage.STEPS, Stage.HYPERPARAMETERS)
    stages = RESULTS if unrecorded or seldom else {difference.stage}
    for block in shared_blocks(pair, last=difference.step):
        equal = (step for step, stage, x, y in block if stage in stages and step <= difference.step and x == y)
        found = max(equal, default=None)
        if found is not None:
            return found
    return None


def _ends_differ(pair: Matched, shared: bool) -> bool:
    (our_state, a), (their_state, b) = also_at_end(pair.a), also_at_end(pair.b)
    return end(pair.a) != end(pair.b) or _differ(our_state, their_state, shared) or _differ(a, b, shared)


def _differ(a: str | None, b: str | None, shared: bool) -> bool:
    return a != b and not (shared and None in (a, b))


def _results_differ(pair: Matched, through: int | None, shared: bool) -> bool:
    if through is None and _ends_differ(pair, shared):
        return True
    if _ended_before(pair, through) is not None:
        return True
    return bool(_first_steps(pair, results(pair.a), through, shared))


def _ended_before(pair: Matched, through: int | None) -> int | None:
    """Return the last step of a training that ended before the step through which both are compared, else None."""
    ends = [part.steps for part in (pair.a, pair.b) if not part.cut and any(one.cut for one in (pair.a, pair.b))]
    return min((end for end in ends if through is not None and end < through), default=None)


def _first_steps(pair: Matched, stages: Iterable[Stage], through: int | None, shared: bool) -> dict[Stage, int]:
    """Return the first step at which each of these stages differs; a stage that differs at none is left out."""
    sides = {stage: in_blocks(pair, stage) for stage in stages}
    last = blocks.block_of(through) if through is not None else math.inf
    found: dict[Stage, int] = {}

    def differing(stage: Stage) -> Iterator[tuple[int, int, Stage]]:
        for number in blocks.differing(*sides[stage], shared=shared):
            yield number, stage.place, stage
            if stage in found:
                return

    # A block of all stages is read at once.
    for number, _, stage in heapq.merge(*map(differing, sides)):
        if number > last:
            break
        a, b = (side.block(number) for side in sides[stage])
        steps = a.keys() & b.keys() if shared else a.keys() | b.keys()
        step = min((step for step in steps if a.get(step) != b.get(step)), default=None)
        if step is not None and (through is None or step <= through):
            found[stage] = step
    return found


def _first(pair: Matched, through: int | None, shared: bool) -> Difference | None:
    if through is None and _only_last_outputs_differ(pair, shared):  # whatever else differed had no effect
        return _difference(pair, pair.a.steps, Stage.OUTPUT, at_end=True)
    found = _first_steps(pair, Stage, through, shared)
    if found:
        step, stage = min(((step, stage) for stage, step in found.items()), key=lambda one: (one[0], one[1].place))
        if stage not in UNHOOKED and not (_has_step(pair.a, step) and _has_step(pair.b, step)):
            stage = Stage.STEPS
        return _difference(pair, step, stage, site(pair.a, pair.b, step, stage))
    ended = _ended_before(pair, through)
    if ended is not None:
        return _difference(pair, ended + 1, Stage.STEPS)
    if through is not None or not _ends_differ(pair, shared):
        return None
    if pair.a.steps != pair.b.steps:
        return _difference(pair, min(pair.a.steps, pair.b.steps) + 1, Stage.STEPS)
    # Equal at every step that both recorded; large weights may not be recorded at the last one.
    stage = _end_stage(pair)
    last = blocks.last(pair.a.digests.get(stage, {pair.a.steps: ()}))
    at_end = stage not in UNHOOKED and last == pair.a.steps
    return _difference(pair, pair.a.steps, stage, site(pair.a, pair.b, 0, stage), at_end)


def _difference(pair: Matched, step: int, stage: Stage, site: str | None = None, at_end: bool = False) -> Difference:
    return Difference(rank=pair.rank, step=step, stage=stage, site=site, at_end=at_end, call=pair.a.is_inference)


def _only_last_outputs_differ(pair: Matched, shared: bool) -> bool:
    (our_state, a), (their_state, b) = also_at_end(pair.a), also_at_end(pair.b)
    if not _differ(a, b, shared) or end(pair.a) != end(pair.b) or our_state != their_state:
        return False
    return not _first_steps(pair, results(pair.a), None, shared)


def _end_stage(pair: Matched) -> Stage:
    if pair.a.framework in UNHOOKED:
        return Stage(pair.a.framework)
    a, b = (part.final or FinalState() for part in (pair.a, pair.b))
    if a.digest != b.digest and pair.a.steps in pair.a.digests.get(Stage.UPDATE, {}):
        # Written to after their last update. If models hold them, that has their names.
        return Stage.STATE if site(pair.a, pair.b, 0, Stage.STATE) else Stage.UPDATE
    if a.digest != b.digest or (a.state_digest == b.state_digest and a.outputs == b.outputs):
        return Stage.UPDATE
    return Stage.STATE if a.state_digest != b.state_digest else Stage.OUTPUT


def _has_step(part: Training, step: int) -> bool:
    return any(step in steps for steps in part.digests.values())


def differing_generators(a: Iterable[Process], b: Iterable[Process]) -> tuple[str, ...]:
    """Return the random generators that were in a different state when a training began.

    They are those of the first process that recorded any.
    """
    ours, theirs = (next((p.generators for p in processes if p.generators), {}) for processes in (a, b))
    return tuple(sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)))


def replicas(run: int, processes: Iterable[Process]) -> Replicas | None:
    """Return whether the ranks that a launcher started hold identical weights, None if fewer than two were recorded."""
    launched = [training for process in processes if process.hello.rank is not None for training in process.trained]
    ranks = [training for training in launched if training.framework not in FITTED]
    stages = (Stage.INIT, Stage.UPDATE)
    if len(ranks) < 2 or not any(stage in ranks[0].digests for stage in stages):
        return None
    found = [
        Difference(rank=rank, step=step, stage=stage)
        for rank, training in enumerate(ranks)
        for stage, step in _first_steps(Matched(rank, ranks[0], training), stages, None, shared=False).items()
    ]
    first = min(found, key=lambda one: (one.step, one.stage.place, one.rank), default=None)
    return Replicas(ranks=len(ranks), run=run, first_difference=first)
