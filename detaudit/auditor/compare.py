"""Compares two recordings step by step: where they first differ, how far the losses part, which weights do."""

import math
import shlex
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from detaudit.auditor.evidence import environment
from detaudit.auditor.judge import localize
from detaudit.auditor.judge.comparer import RESULTS, Pair, first_difference, last_equal_step, pairs, shared_digests
from detaudit.errors import NothingToCompareError
from detaudit.model import (
    SCHEMA_VERSION,
    UNHOOKED,
    Comparison,
    Difference,
    Likeness,
    LossPair,
    NextStep,
    Number,
    Recording,
    RunRecord,
    Side,
    Stage,
    Training,
    Weight,
    WeightPair,
)

Layout = list[tuple[str, tuple[int, ...]]]


def compare(
    a: Recording,
    b: Recording,
    *,
    names: tuple[str, str] = ("A", "B"),
    command: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> Comparison:
    """Return what two recordings have in common and where they part. ``names`` are what they were asked for by.

    Raises NothingToCompareError where they recorded nothing that could be found to match: no two things alike, or
    losses alone, which agree.
    """
    ours, theirs, left_out = _common(a, b)
    matched = pairs(ours.run, theirs.run)
    unseen = [name for name, side in zip(names, (ours, theirs), strict=True) if not side.run.has_weights]
    sides = [_losses_only(side.run) if unseen else side.run for side in (ours, theirs)]
    differs = first_difference(*sides, shared=True)
    if differs is None and unseen:
        raise NothingToCompareError(
            f"the losses agree, but no weights of {' and '.join(dict.fromkeys(unseen))} were seen, and equal losses "
            "alone are no evidence",
            "--artifact of `detaudit run` compares a file that the script saves them to.",
        )
    until = last_equal_step(ours.run, theirs.run, differs) if differs else None
    return Comparison(
        schema_version=SCHEMA_VERSION,
        command=tuple(command),
        verdict=Likeness.DIFFERENT if differs else Likeness.SAME,
        a=_side(names[0], a),
        b=_side(names[1], b),
        environment=environment.changes(a.environment, b.environment),
        differs=differs,
        equal_until=until,
        cause=_cause(matched, differs, until) if differs else None,
        curve=tuple(pair for rank in matched for pair in _curve(*rank)),
        weights=tuple(pair for rank in matched for pair in _unlike_weights(*rank)),
        weights_compared=sum(len(_alike(x, y)) for _, x, y in matched),
        stages=_stages(matched),
        steps_compared=max((len(_steps(pair)) for pair in matched), default=0),
        warnings=(*dict.fromkeys(warnings), *_warnings(a, b, names), *left_out, *_unlike_ranks(matched)),
        next_steps=_next_steps(command) if differs else (),
    )


def _side(name: str, side: Recording) -> Side:
    return Side(name=name, recipe=side.recipe, ranks=side.run.ranks, command=side.command)


def _common(a: Recording, b: Recording) -> tuple[Recording, Recording, list[str]]:
    """Return both without printed losses or files that the other does not show, and a warning for each of these."""
    kinds = [{part.framework for part in side.run.unhooked} for side in (a, b)]
    words = {Stage.STDOUT: "printed losses (--loss-pattern)", Stage.ARTIFACT: "files (--artifact)"}
    left_out = [
        f"left out, because one side has none: {words[kind]}" for kind in UNHOOKED if kind in kinds[0] ^ kinds[1]
    ]
    alone = kinds[0] ^ kinds[1]
    ours, theirs = (
        replace(side, run=replace(side.run, unhooked=tuple(p for p in side.run.unhooked if p.framework not in alone)))
        for side in (a, b)
    )
    if not ours.run.parts or not theirs.run.parts:
        raise NothingToCompareError(
            f"nothing was recorded of both: {_shown(a)} on one side, {_shown(b)} on the other",
            "Printed losses of an audit are read with --loss-pattern.",
        )
    return ours, theirs, left_out


def _shown(side: Recording) -> str:
    return " and ".join(dict.fromkeys(part.framework for part in side.run.parts)) or "nothing"


def _losses_only(run: RunRecord) -> RunRecord:
    def without(part: Training) -> Training:
        return replace(part, final=replace(part.final, digest=None)) if part.final else part

    return replace(run, trainings=tuple(map(without, run.trainings)), unhooked=tuple(map(without, run.unhooked)))


def _cause(matched: Sequence[Pair], differs: Difference, until: int | None) -> str | None:
    """Return what the first difference points to, no surer than the steps before it allow; None for what has no cause.

    Steps that were not kept on both sides may hold the difference, at any stage.
    """
    pair = next((pair for pair in matched if pair.rank == differs.rank), None)
    if pair is None or differs.stage is Stage.STEPS or pair.a.framework != pair.b.framework:
        return None
    if differs.stage in UNHOOKED:
        return localize.cause(differs.stage, _stages(matched))
    if until == differs.step:
        return "equal at every step that was recorded: the weights or the loss changed after the last one"
    found = list(shared_digests(pair))
    before = max((step for step, *_ in found if step < differs.step), default=0)
    if before < differs.step - 1:
        return (
            f"of the steps between {before} and {differs.step} nothing was kept on both sides: it may come from there"
        )
    return localize.cause(differs.stage, _ordered({stage for step, stage, *_ in found if step == differs.step}))


def _ordered(stages: set[Stage]) -> tuple[Stage, ...]:
    return tuple(stage for stage in Stage if stage in stages)


def _stages(matched: Sequence[Pair]) -> tuple[Stage, ...]:
    return _ordered({stage for pair in matched for _, stage, *_ in shared_digests(pair)})


def _steps(pair: Pair) -> set[int]:
    """Return the steps, from the first, at which both sides recorded a result."""
    return {step for step, stage, *_ in shared_digests(pair) if step and stage in RESULTS}


def _curve(rank: int, a: Training, b: Training) -> Iterator[LossPair]:
    for step in sorted(a.losses.keys() & b.losses.keys()):
        ours, theirs = a.losses[step], b.losses[step]
        yield LossPair(rank=rank, step=step, a=ours, b=theirs, distance=_distance(ours, theirs))


def _distance(a: Number, b: Number) -> float | None:
    if not isinstance(a, float | int) or not isinstance(b, float | int):
        return None
    found = abs(a - b)
    return found if math.isfinite(found) else None


def _weights(part: Training) -> tuple[Weight, ...]:
    return part.final.weights if part.final else ()


def _layout(part: Training) -> Layout:
    return [(weight.dtype, weight.shape) for weight in _weights(part)]


def _alike(a: Training, b: Training) -> list[int]:
    """Return the places at which both sides have a tensor of one type and shape, if they have as many."""
    ours, theirs = _layout(a), _layout(b)
    return [place for place in range(len(ours)) if ours[place] == theirs[place]] if len(ours) == len(theirs) else []


def _unlike_weights(rank: int, a: Training, b: Training) -> Iterator[WeightPair]:
    for place in _alike(a, b):
        x, y = _weights(a)[place], _weights(b)[place]
        if x.digest != y.digest:
            yield WeightPair(rank=rank, place=place, dtype=x.dtype, shape=x.shape, a=x.sum, b=y.sum)


def _warnings(a: Recording, b: Recording, names: tuple[str, str]) -> Iterator[str]:
    if names[0] == names[1]:
        yield "both sides are one recording: that it is the same as itself says nothing"
    if _held(a) != _held(b):
        unlike = f"{a.recipe.name} and {b.recipe.name}"
        yield f"unlike recipes: {unlike}; a flag may change the bits without mending anything"
    counts = [len(side.run.trainings) for side in (a, b)]
    if counts[0] != counts[1]:
        yield f"unlike numbers of ranks: {counts[0]} and {counts[1]}"
    ours, theirs = ({stage for part in side.run.trainings for stage in part.digests} for side in (a, b))
    for name, more in zip(names, (ours - theirs, theirs - ours), strict=True):
        if more:
            yield f"recorded in {name} alone, and not compared: {', '.join(_ordered(more))}"
    for name, side in zip(names, (a, b), strict=True):
        if side.run.sampled:
            yield f"{name}: its weights are large, and were digested at steps 1, 2, 4, 8, … and at the end only"


def _held(side: Recording) -> tuple[object, ...]:
    """Return what a recipe holds still; a seed without a flag is set by nothing."""
    return (sorted(side.recipe.flags), side.recipe.seed) if side.recipe.flags else ()


def _unlike_ranks(matched: Sequence[Pair]) -> Iterator[str]:
    for rank, a, b in matched:
        if a.framework != b.framework:
            yield (
                f"rank {rank} trained with {a.framework} on one side and {b.framework} on the other: "
                "digests of unlike frameworks are never equal, so only the losses tell something"
            )
        ours, theirs = _layout(a), _layout(b)
        if len(ours) != len(theirs):
            yield f"rank {rank} has {len(ours)} tensors of weights on one side and {len(theirs)} on the other"
        elif ours != theirs:
            place = next(place for place in range(len(ours)) if ours[place] != theirs[place])
            unlike = f"{_kind(ours[place])} on one side and {_kind(theirs[place])} on the other"
            yield f"rank {rank}, weight {place} is {unlike}"


def _kind(layout: tuple[str, tuple[int, ...]]) -> str:
    return f"{layout[0]} of shape {list(layout[1])}"


def _next_steps(command: Sequence[str]) -> tuple[NextStep, ...]:
    if not command:
        return ()
    words, rest = [], iter(command)
    for word in rest:
        if word == "--format":
            next(rest, None)
        elif not word.startswith("--format="):
            words.append(word)
    why = "the losses at every step, and all weights that differ"
    return (NextStep(command=f"{shlex.join(words)} --format json", why=why),)
