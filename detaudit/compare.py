"""Compare two recordings step by step: where they first differ, how the losses diverge, which weights differ."""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from msgspec.structs import replace

from detaudit.errors import NothingToCompareError
from detaudit.judge import group
from detaudit.judge.comparer import Matched, Shared, first_difference, last_equal_step, open_output, pairs, shared_of
from detaudit.model import (
    SCHEMA_VERSION,
    UNHOOKED,
    ComparedSide,
    Comparison,
    ComparisonVerdict,
    Difference,
    Explanation,
    LossPair,
    NextStep,
    Number,
    OutputDifference,
    Purpose,
    Recording,
    RunRecord,
    Stage,
    Training,
    Warning,
    Weight,
    WeightPair,
)
from detaudit.model.outputs import Outputs
from detaudit.model.warnings import (
    FrameworksDiffer,
    PartNotShared,
    RanksDiffer,
    RecipesDiffer,
    SameRecording,
    StagesNotShared,
    TensorCountsDiffer,
    TensorLayoutsDiffer,
    WeightsSampled,
)
from detaudit.outputs import compare as outputs
from detaudit.runs import environment

Layout = list[tuple[str, tuple[int, ...]]]


def compare(
    a: Recording,
    b: Recording,
    *,
    names: tuple[str, str] = ("A", "B"),
    command: Sequence[str] = (),
    warnings: Sequence[Warning] = (),
) -> Comparison:
    """Return what two recordings have in common and where they differ. ``names`` are what was typed for them.

    Raises NothingToCompareError if they have nothing in common, or only losses, which match.
    """
    ours, theirs, not_shared = _common(a, b)
    matched = pairs(ours.run, theirs.run)
    unseen = [name for name, side in zip(names, (ours, theirs), strict=True) if not side.run.has_weights]
    sides = [_losses_only(side.run) if unseen else side.run for side in (ours, theirs)]
    differs = first_difference(*sides, shared=True)
    if differs is None and unseen:
        raise NothingToCompareError(
            f"the losses match, but no weights of {' and '.join(dict.fromkeys(unseen))} were recorded, and matching "
            "losses prove nothing on their own",
            "Use --artifact of `detaudit run` to compare a file that the script saves them to.",
        )
    undecided = open_output(*sides) if differs is None else None
    until = last_equal_step(ours.run, theirs.run, differs) if differs else None
    shared = {pair.rank: shared_of(pair, differs) for pair in matched}
    changes = environment.changes(a.environment, b.environment)
    explanation = _explanation(matched, shared, differs) if differs else None
    if explanation is not None and changes:
        explanation = group.in_changed_environment(explanation)
    return Comparison(
        schema_version=SCHEMA_VERSION,
        command=tuple(command),
        verdict=_verdict(differs, undecided),
        a=_side(names[0], a),
        b=_side(names[1], b),
        environment_changes=changes,
        first_difference=differs,
        last_equal_step=until,
        explanation=explanation,
        losses=tuple(pair for rank in matched for pair in _losses(*rank)),
        differing_weights=tuple(pair for rank in matched for pair in _differing_weights(*rank)),
        weights_compared=sum(len(_same_layout(x, y)) for _, x, y in matched),
        stages=_ordered({stage for one in shared.values() for stage in one.stages}),
        steps_compared=max((one.steps for one in shared.values()), default=0),
        through=min((step for side in sides if (step := side.through) is not None), default=None),
        open=undecided,
        output_differences=_output_differences(*(side.run.outputs for side in (ours, theirs))),
        warnings=(*dict.fromkeys(warnings), *_warnings(a, b, names), *not_shared, *_rank_warnings(matched)),
        next_steps=_next_steps(command) if differs else (),
    )


def _verdict(differs: Difference | None, undecided: OutputDifference | None) -> ComparisonVerdict:
    if differs is not None:
        return ComparisonVerdict.DIFFERENT
    return ComparisonVerdict.INCONCLUSIVE if undecided is not None else ComparisonVerdict.IDENTICAL


def _side(name: str, side: Recording) -> ComparedSide:
    return ComparedSide(
        name=name, recipe=side.recipe, ranks=side.run.ranks, command=side.command, environment=side.environment
    )


def _output_differences(a: Outputs | None, b: Outputs | None) -> tuple[OutputDifference, ...]:
    """Return in what left both runs they differ, nothing if that was not kept of both."""
    return outputs.differences(a, b) if a is not None and b is not None else ()


def _common(a: Recording, b: Recording) -> tuple[Recording, Recording, list[Warning]]:
    """Return both without printed losses or files that only one has, and a warning for each of these."""
    kinds = [{part.framework for part in side.run.unhooked} for side in (a, b)]
    alone = kinds[0] ^ kinds[1]
    ours, theirs = (
        replace(side, run=replace(side.run, unhooked=tuple(p for p in side.run.unhooked if p.framework not in alone)))
        for side in (a, b)
    )
    if not ours.run.parts or not theirs.run.parts:
        raise NothingToCompareError(
            f"the two sides have nothing in common: {_shown(a)} on one, {_shown(b)} on the other",
            "Printed losses of an audit are read with --loss-pattern.",
        )
    return ours, theirs, [PartNotShared(part=kind) for kind in UNHOOKED if kind in alone]


def _shown(side: Recording) -> str:
    return " and ".join(dict.fromkeys(part.framework for part in side.run.parts)) or "nothing"


def _losses_only(run: RunRecord) -> RunRecord:
    def without(part: Training) -> Training:
        return replace(part, final=replace(part.final, digest=None)) if part.final else part

    return run.each(without)


def _explanation(matched: Sequence[Matched], shared: Mapping[int, Shared], differs: Difference) -> Explanation | None:
    """Return what the first difference points to, no surer than the steps before it allow; None if that is nothing.

    Steps that were not recorded on both sides may hold the difference, at any stage.
    """
    pair = next((pair for pair in matched if pair.rank == differs.rank), None)
    if pair is None or differs.stage is Stage.STEPS or pair.a.framework != pair.b.framework:
        return None
    if differs.stage in UNHOOKED:
        return group.explanation(differs.stage, _ordered({stage for one in shared.values() for stage in one.stages}))
    if differs.at_end or differs.of_fit:
        return group.of_difference(differs, ())
    of_rank = shared[pair.rank]
    if of_rank.before < differs.step - 1:
        return Explanation(gap=(of_rank.before, differs.step))
    return group.explanation(differs.stage, _ordered(of_rank.there))


def _ordered(stages: set[Stage]) -> tuple[Stage, ...]:
    return tuple(stage for stage in Stage if stage in stages and stage is not Stage.HYPERPARAMETERS)


def _losses(rank: int, a: Training, b: Training) -> Iterator[LossPair]:
    both = ((step, loss, b.losses[step]) for step, loss in a.losses.items() if step in b.losses)
    for step, ours, theirs in sorted(both, key=itemgetter(0)):
        yield LossPair(rank=rank, step=step, a=ours, b=theirs, distance=_distance(ours, theirs))


def _distance(a: Number, b: Number) -> float | None:
    if not isinstance(a, float | int) or not isinstance(b, float | int):
        return None
    apart = abs(a - b)
    return apart if math.isfinite(apart) else None


def _weights(part: Training) -> tuple[Weight, ...]:
    return part.final.weights if part.final else ()


def _layout(part: Training) -> Layout:
    return [(weight.dtype, weight.shape) for weight in _weights(part)]


def _same_layout(a: Training, b: Training) -> list[int]:
    """Return the places at which both sides have a tensor of one type and shape, if they have the same number."""
    ours, theirs = _layout(a), _layout(b)
    return [index for index in range(len(ours)) if ours[index] == theirs[index]] if len(ours) == len(theirs) else []


def _differing_weights(rank: int, a: Training, b: Training) -> Iterator[WeightPair]:
    for index in _same_layout(a, b):
        x, y = _weights(a)[index], _weights(b)[index]
        if x.digest != y.digest:
            yield WeightPair(rank=rank, place=index, dtype=x.dtype, shape=x.shape, a=x.sum, b=y.sum)


def _warnings(a: Recording, b: Recording, names: tuple[str, str]) -> Iterator[Warning]:
    if names[0] == names[1]:
        yield SameRecording()
    if _recipe_key(a) != _recipe_key(b):
        yield RecipesDiffer(a=a.recipe.name, b=b.recipe.name)
    counts = [len(side.run.trainings) for side in (a, b)]
    if counts[0] != counts[1]:
        yield RanksDiffer(a=counts[0], b=counts[1])
    ours, theirs = ({stage for part in side.run.trainings for stage in part.digests} for side in (a, b))
    for name, more in zip(names, (ours - theirs, theirs - ours), strict=True):
        if more:
            yield StagesNotShared(recording=name, stages=_ordered(more))
    for name, side in zip(names, (a, b), strict=True):
        if side.run.sampled:
            yield WeightsSampled(recording=name)


def _recipe_key(side: Recording) -> tuple[object, ...]:
    """Return what a recipe sets; a seed without a flag is set by nothing."""
    return (sorted(side.recipe.flags), side.recipe.seed) if side.recipe.flags else ()


def _rank_warnings(matched: Sequence[Matched]) -> Iterator[Warning]:
    for rank, a, b in matched:
        if a.framework != b.framework:
            yield FrameworksDiffer(rank=rank, a=a.framework, b=b.framework)
        ours, theirs = _layout(a), _layout(b)
        if len(ours) != len(theirs):
            yield TensorCountsDiffer(rank=rank, a=len(ours), b=len(theirs))
        elif ours != theirs:
            index = next(index for index in range(len(ours)) if ours[index] != theirs[index])
            yield TensorLayoutsDiffer(rank=rank, place=index, a=ours[index], b=theirs[index])


def _next_steps(command: Sequence[str]) -> tuple[NextStep, ...]:
    if not command:
        return ()
    words, rest = [], iter(command)
    for word in rest:
        if word == "--format":
            next(rest, None)
        elif not word.startswith("--format="):
            words.append(word)
    return (NextStep(command=f"{shlex.join(words)} --format json", purpose=Purpose.PRINT_ALL_LOSSES),)
