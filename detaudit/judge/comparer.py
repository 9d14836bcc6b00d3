"""What is equal, and where two recordings first differ."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from detaudit.model import (
    FITTED,
    NAMED,
    UNHOOKED,
    Difference,
    FinalState,
    ModelTensor,
    OutputDifference,
    Replicas,
    RunRecord,
    Stage,
    Training,
    digits,
    series,
)
from detaudit.model.outputs import STDERR, STDOUT
from detaudit.model.record import last_step
from detaudit.model.series import Series
from detaudit.outputs.compare import deciding, differences
from detaudit.runs.log import Process

# Decides which parts of two runs are compared with each other, and which of what was recorded is a result.


RESULTS = frozenset({Stage.INIT, Stage.FORWARD, Stage.UPDATE, Stage.STATE, Stage.OUTPUT, *UNHOOKED})
"""The stages that are results of a training. The others only explain: a script may draw a random name for its logs."""


def results(part: Training) -> frozenset[Stage]:
    """Return the stages that are results of this part. A model that is only called may hold weights that it ignores."""
    return RESULTS - {Stage.INIT} if part.is_inference else RESULTS


class Matched(NamedTuple):
    """Two parts that are compared with each other, and the rank of the first."""

    rank: int
    a: Training
    b: Training


def pairs(a: RunRecord, b: RunRecord) -> list[Matched]:
    """Return what is compared: trainings in their order, or by what was trained, printed losses and files by kind."""
    theirs = {part.framework: part for part in b.unhooked}
    shown = [(rank, part) for rank, part in enumerate(a.parts) if rank >= len(a.trainings) and part.framework in theirs]
    ended = min([one.through for one in (a, b) if one.through is not None], default=None)
    trained = _trained(a.trainings, b.trainings, ended)
    return trained + [Matched(rank, part, theirs[part.framework]) for rank, part in shown]


def _trained(a: Sequence[Training], b: Sequence[Training], ended: int | None) -> list[Matched]:
    """Match trainings. Of a run that was ``ended``, others may be missing between those of several frameworks.

    Nobody knows how those of such a run end, so they are matched by what they did until then: several may begin alike.
    """
    if {part.attempt for part in a} != {part.attempt for part in b}:
        return []  # ranks that were started again begin anywhere
    placed = [part for part in b if not part.unplaced]
    matched: dict[int, Training] = {}
    for rank, part in enumerate(a):
        if placed and not part.unplaced:
            same = (one for one in placed if ended is not None and one.framework == part.framework)
            matched[rank] = next(same, placed[0])
            placed = [one for one in placed if one is not matched[rank]]
    left = [(_likeness(part), part) for part in (*(part for part in b if part.unplaced), *placed)]
    ours = [_likeness(part) for part in a] if left else []
    for level in range(4):
        if level == _BEGINNING and ended is not None:
            unmatched = {rank: a[rank] for rank in range(len(ours)) if rank not in matched}
            same_so_far = _same_so_far(unmatched, [part for _, part in left], ended)
            matched |= {rank: left[number][1] for rank, number in same_so_far.items()}
            left = [one for number, one in enumerate(left) if number not in same_so_far.values()]
        for rank in [rank for rank in range(len(ours)) if rank not in matched]:
            counterpart = next((one for one in left if one[0][level] == ours[rank][level]), None)
            if counterpart is not None:
                matched[rank] = counterpart[1]
                left.remove(counterpart)
    return [Matched(rank, a[rank], other) for rank, other in sorted(matched.items())]


_BEGINNING = 2
"""The place of how a training began in its likeness."""


def _likeness(part: Training) -> tuple[object, ...]:
    """Return what two trainings are matched by: all that they did, how they ended, how they began, or nothing else."""
    initial = series.fingerprint(part.digests.get(Stage.INIT, {}))
    return _key(part), end(part), (part.framework, initial), part.framework


def _same_so_far(ours: Mapping[int, Training], theirs: Sequence[Training], ended: int) -> dict[int, int]:
    """Match trainings, of which some were ended, that have the same results as far as both went: rank and number.

    The longest come first, since a short one may be the beginning of several.
    """
    matched: dict[int, int] = {}
    candidates = [
        (_limit(pair, ended) or 0, number, pair)
        for rank, part in ours.items()
        for number, pair in enumerate(Matched(rank, part, other) for other in theirs)
        if part.framework == pair.b.framework
    ]
    for limit, number, pair in sorted(candidates, key=lambda one: -one[0]):
        free = limit and pair.rank not in matched and number not in matched.values()
        if free and not _results_differ(pair, limit, shared=True):
            matched[pair.rank] = number
    return matched


def identity(run: RunRecord) -> str:
    """Return a text that is equal for two runs of one audit if and only if their results are."""
    placed = [_key(part) for part in run.parts if not part.unplaced]
    unplaced = sorted(_key(part) for part in run.parts if part.unplaced)
    return _digest((placed, unplaced))


def _key(part: Training) -> str:
    fingerprints = [
        (stage, series.fingerprint(part.digests[stage])) for stage in sorted(results(part) & part.digests.keys())
    ]
    return _digest((end(part), also_at_end(part), fingerprints))


def _digest(value: object) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=16).hexdigest()


def end(part: Training) -> tuple[str, int, str, str | None]:
    """Return what must be equal at the end: of weights every bit, not their sum nor where they live."""
    final = part.final or FinalState()
    return part.framework, part.steps, digits(part.last_loss), final.digest


def also_at_end(part: Training) -> tuple[str | None, str | None]:
    """Return what must be equal too, but an older baseline may not have: the buffers, and the last outputs."""
    final = part.final or FinalState()
    return final.state_digest, final.outputs


# What two parts of runs that are compared both recorded.


def sides(pair: Matched, stage: Stage) -> tuple[Series, Series]:
    """Return the digests of a stage on both sides."""
    return series.series(pair.a.digests.get(stage, {})), series.series(pair.b.digests.get(stage, {}))


def shared_stages(pair: Matched) -> dict[Stage, tuple[Series, Series]]:
    """Return both sides of each stage that both recorded."""
    return {stage: sides(pair, stage) for stage in Stage if stage in pair.a.digests and stage in pair.b.digests}


@dataclass
class Shared:
    """What both sides recorded of one rank: the stages, and the number of steps, from the first, that have a result.

    ``before`` is the last step before the first difference, ``there`` are the stages at it.
    """

    stages: set[Stage] = field(default_factory=set)
    steps: int = 0
    before: int = 0
    there: set[Stage] = field(default_factory=set)


def shared_of(pair: Matched, differs: Difference | None) -> Shared:
    """Return what both sides recorded of a rank; ``differs`` is where they first differ."""
    recorded, at = Shared(), differs.step if differs else -1
    stages = shared_stages(pair)
    for block in sorted({block for a, b in stages.values() for block in a.blocks.keys() & b.blocks.keys()}):
        results = [series.NOTHING[:, 0]]
        for stage, (a, b) in stages.items():
            steps = series.shared_steps(a.rows(block), b.rows(block))
            if len(steps):
                recorded.stages.add(stage)
                recorded.before = max([recorded.before, *steps[steps < at][-1:].tolist()])
                recorded.there |= {stage} if at in steps else set()
                results += [steps[steps > 0]] if stage in RESULTS else []
        recorded.steps += len(series.union(results))
    return recorded


# Name what differs between two trainings: the tensor of a model, the fit, the file, the part of a value.


def site(a: Training, b: Training, step: int, stage: Stage) -> str | None:
    """Return the name of the first thing that differs in a stage and the number of others, None if it has no name."""
    if stage is Stage.STATE:
        differing = _differing_tensors(a, b)
        differing = {tensor for tensor in differing if not tensor.name.startswith("unnamed ")} or differing
        names = {tensor.name for tensor in differing if tensor.buffer} or {tensor.name for tensor in differing}
    elif stage is Stage.HYPERPARAMETERS:
        before, after = (in_force(part, step) for part in (a, b))
        changed = (name for name in before if name in after and before[name] != after[name])
        names = {f"{name} {before[name]} and {after[name]}" for name in changed}
    elif stage in NAMED or a.framework in FITTED:
        one, other = (part.digests.get(stage, {}).get(step, ()) for part in (a, b))
        names = {part.partition(" ")[2] for part in {*one} ^ {*other}} - {""}
        if stage is Stage.ARTIFACT:  # a file has a digest of its own, which what is in it says better
            names -= {name.partition(": ")[0] for name in names if ": " in name}
    else:
        names = set()
    if not names:
        return None
    first, *more = sorted(names)
    return f"{first} and {len(more)} more" if more else first


def in_force(part: Training, step: int) -> dict[str, str]:
    """Return the hyperparameters with which a step was made: they were recorded when they changed."""
    hyperparameters: dict[str, str] = {}
    recorded = part.digests.get(Stage.HYPERPARAMETERS, {})
    for one in sorted(one for one in recorded if one <= step):
        for event in recorded[one]:
            values = (value.partition("=") for value in event.partition(" ")[2].split("; "))
            hyperparameters.update({name: value for name, _, value in values})
    return hyperparameters


def _differing_tensors(a: Training, b: Training) -> set[ModelTensor]:
    """Return the tensors that only the models of one run hold at the end."""
    ours, theirs = (Counter(part.final.state if part.final else ()) for part in (a, b))
    return {*(ours - theirs), *(theirs - ours)}


# Decides what is equal, and where two runs first differ: for audits, baselines, comparisons and traces alike.
#
# Equal are the bits of the weights, of the buffers of models, of the losses and of what the recorder calls results
# (pairing.RESULTS). Never a sum of floats, which may differ in the last place though every weight is the same. If all
# of that is equal, what left the runs decides: files, printed text, the exit status (outputs/compare.py).


def first_difference(
    a: RunRecord, b: RunRecord, *, through: int | None = None, shared: bool = False
) -> Difference | None:
    """Return the earliest step and stage at which two runs with different results differ, None if none do.

    ``through`` is the last step to compare; then neither the ends nor the number of steps count. ``shared`` compares
    only stages and steps that both recorded, as for a baseline that keeps some steps. Of a training that was cut, what
    follows is unknown and not compared.
    """
    difference = _first_of_parts(a, b, through, shared)
    complete = through is None and a.through is None and b.through is None
    return difference or (_first_output(a, b) if complete else None)


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


def of_output(difference: OutputDifference | None) -> Difference | None:
    """Return a difference of what left two runs as one of the runs."""
    if difference is None:
        return None
    stage = Stage.PRINTED if difference.path in (STDOUT, STDERR) else Stage.SAVED
    return Difference(rank=0, step=0, stage=stage, site=difference.path, output=difference)


def _first_of_parts(a: RunRecord, b: RunRecord, through: int | None, shared: bool) -> Difference | None:
    matched = pairs(a, b)
    complete = not _lacks(a, b, matched) and not _lacks(b, a, matched)
    differing = [pair for pair in matched if _results_differ(pair, _limit(pair, through), shared)]
    if complete and not differing:
        return None
    # If the results of all trainings match, what explains a training explains nothing.
    only_unhooked = bool(differing) and all(pair.a.framework in UNHOOKED for pair in differing)
    chosen = differing if only_unhooked else matched
    candidates = [difference for pair in chosen if (difference := _first(pair, _limit(pair, through), shared))]
    if not complete:
        missing = min(len(a.trainings), len(b.trainings))
        candidates.append(Difference(rank=missing, step=0, stage=Stage.STEPS))
    first = min(candidates, key=lambda difference: difference.order)
    same = (one.rank for one in candidates if one is not first and one.order == first.order)
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
    equal = (
        series.last_equal(a, b, difference.step) for stage, (a, b) in shared_stages(pair).items() if stage in stages
    )
    return max((step for step in equal if step is not None), default=None)


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
    first_steps = {stage: series.first_step(*sides(pair, stage), through=through, shared=shared) for stage in stages}
    return {stage: step for stage, step in first_steps.items() if step is not None}


def _first(pair: Matched, through: int | None, shared: bool) -> Difference | None:
    if through is None and _only_last_outputs_differ(pair, shared):  # whatever else differed had no effect
        return _difference(pair, pair.a.steps, Stage.OUTPUT, at_end=True)
    first_steps = _first_steps(pair, Stage, through, shared)
    if first_steps:
        step, stage = min(
            ((step, stage) for stage, step in first_steps.items()), key=lambda one: (one[0], one[1].position)
        )
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
    last = last_step(pair.a.digests.get(stage, {pair.a.steps: ()}))
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
    candidates = [
        Difference(rank=rank, step=step, stage=stage)
        for rank, training in enumerate(ranks)
        for stage, step in _first_steps(Matched(rank, ranks[0], training), stages, None, shared=False).items()
    ]
    first = min(candidates, key=lambda one: (one.step, one.stage.position, one.rank), default=None)
    return Replicas(ranks=len(ranks), run=run, first_difference=first)
