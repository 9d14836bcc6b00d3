"""Compares two recordings step by step: where they first differ, how far the losses part, which weights do."""

import math
import shlex
from collections.abc import Iterator, Sequence

import msgspec

from detaudit.auditor.baseline.recordings import Pair, equal_until, first_difference, marks, pairs, trainings
from detaudit.auditor.evidence import environment
from detaudit.auditor.judge import localize
from detaudit.auditor.judge.streams import LADDER, RESULT
from detaudit.errors import NothingToCompareError
from detaudit.model import (
    OUTSIDE,
    SCHEMA_VERSION,
    Comparison,
    Difference,
    Likeness,
    LossPair,
    NextStep,
    Number,
    Recording,
    Side,
    Stage,
    Trained,
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
    matched = pairs(ours, theirs)
    unseen = [name for name, side in zip(names, (ours, theirs), strict=True) if not _has_weights(side)]
    differs = first_difference(*((_losses_only(ours), _losses_only(theirs)) if unseen else (ours, theirs)))
    if differs is None and unseen:
        raise NothingToCompareError(
            f"the losses agree, but no weights of {' and '.join(dict.fromkeys(unseen))} were seen, and equal losses "
            "alone are no evidence",
            "--artifact of `detaudit run` compares a file that the script saves them to.",
        )
    until = equal_until(ours, theirs, differs) if differs else None
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
        steps_compared=max((len(_steps(x, y)) for _, x, y in matched), default=0),
        warnings=(*dict.fromkeys(warnings), *_warnings(a, b, names), *left_out, *_unlike_ranks(matched)),
        next_steps=_next_steps(command) if differs else (),
    )


def _side(name: str, side: Recording) -> Side:
    ranks = tuple(rank.record for rank in side.ranks)
    return Side(name=name, recipe=side.recipe, ranks=ranks, command=side.command)


def _common(a: Recording, b: Recording) -> tuple[Recording, Recording, list[str]]:
    """Return both without printed losses or files that the other does not show, and a warning for each of these."""
    kinds = [{rank.record.framework for rank in side.ranks} & set(OUTSIDE) for side in (a, b)]
    words = {Stage.STDOUT: "printed losses (--loss-pattern)", Stage.ARTIFACT: "files (--artifact)"}
    left_out = [
        f"left out, because one side has none: {words[kind]}" for kind in OUTSIDE if kind in kinds[0] ^ kinds[1]
    ]
    alone = kinds[0] ^ kinds[1]
    ours, theirs = (
        msgspec.structs.replace(side, ranks=tuple(r for r in side.ranks if r.record.framework not in alone))
        for side in (a, b)
    )
    if not ours.ranks or not theirs.ranks:
        raise NothingToCompareError(
            f"nothing was recorded of both: {_shown(a)} on one side, {_shown(b)} on the other",
            "Printed losses of an audit are read with --loss-pattern.",
        )
    return ours, theirs, left_out


def _shown(side: Recording) -> str:
    return " and ".join(dict.fromkeys(rank.record.framework for rank in side.ranks)) or "nothing"


def _has_weights(side: Recording) -> bool:
    return any(rank.record.digest for rank in side.ranks)


def _losses_only(side: Recording) -> Recording:
    tell = msgspec.structs.replace
    return tell(side, ranks=tuple(tell(rank, record=tell(rank.record, digest=None)) for rank in side.ranks))


def _cause(matched: Sequence[Pair], differs: Difference, until: int | None) -> str | None:
    """Return what the first difference points to, no surer than the steps before it allow; None for what has no cause.

    Steps that were not kept on both sides may hold the difference, at any stage.
    """
    pair = next(((a, b) for rank, a, b in matched if rank == differs.rank), None)
    if pair is None or differs.stage is Stage.STEPS or pair[0].record.framework != pair[1].record.framework:
        return None
    if differs.stage in OUTSIDE:
        return localize.cause(differs.stage, _stages(matched))
    if until == differs.step:
        return "equal at every step that was recorded: the weights or the loss changed after the last one"
    found = list(marks(*pair))
    before = max((step for step, *_ in found if step < differs.step), default=0)
    if before < differs.step - 1:
        return (
            f"of the steps between {before} and {differs.step} nothing was kept on both sides: it may come from there"
        )
    return localize.cause(differs.stage, _ordered({stage for step, stage, *_ in found if step == differs.step}))


def _ordered(stages: set[Stage]) -> tuple[Stage, ...]:
    return tuple(stage for stage in (*LADDER, *OUTSIDE) if stage in stages)


def _stages(matched: Sequence[Pair]) -> tuple[Stage, ...]:
    return _ordered({stage for _, a, b in matched for _, stage, *_ in marks(a, b)})


def _steps(a: Trained, b: Trained) -> set[int]:
    """Return the steps, from the first, at which a result was kept on both sides."""
    return {step for step, stage, *_ in marks(a, b) if step and stage in RESULT}


def _curve(rank: int, a: Trained, b: Trained) -> Iterator[LossPair]:
    for step in sorted(a.losses.keys() & b.losses.keys()):
        ours, theirs = a.losses[step], b.losses[step]
        yield LossPair(rank=rank, step=step, a=ours, b=theirs, distance=_distance(ours, theirs))


def _distance(a: Number, b: Number) -> float | None:
    if not isinstance(a, float | int) or not isinstance(b, float | int):
        return None
    found = abs(a - b)
    return found if math.isfinite(found) else None


def _layout(side: Trained) -> Layout:
    return [(weight.dtype, weight.shape) for weight in side.weights]


def _alike(a: Trained, b: Trained) -> list[int]:
    """Return the places at which both sides have a tensor of one type and shape, if they have as many."""
    ours, theirs = _layout(a), _layout(b)
    return [place for place in range(len(ours)) if ours[place] == theirs[place]] if len(ours) == len(theirs) else []


def _unlike_weights(rank: int, a: Trained, b: Trained) -> Iterator[WeightPair]:
    for place in _alike(a, b):
        x, y = a.weights[place], b.weights[place]
        if x.digest != y.digest:
            yield WeightPair(rank=rank, place=place, dtype=x.dtype, shape=x.shape, a=x.sum, b=y.sum)


def _warnings(a: Recording, b: Recording, names: tuple[str, str]) -> Iterator[str]:
    if names[0] == names[1]:
        yield "both sides are one recording: that it is the same as itself says nothing"
    if _held(a) != _held(b):
        unlike = f"{a.recipe.name} and {b.recipe.name}"
        yield f"unlike recipes: {unlike}; a flag may change the bits without mending anything"
    if len(trainings(a)) != len(trainings(b)):
        yield f"unlike numbers of ranks: {len(trainings(a))} and {len(trainings(b))}"
    ours, theirs = ({stage for rank in trainings(side) for stage in rank.marks} for side in (a, b))
    for name, more in zip(names, (ours - theirs, theirs - ours), strict=True):
        if more:
            yield f"recorded in {name} alone, and not compared: {', '.join(_ordered(more))}"
    for name, side in zip(names, (a, b), strict=True):
        if any(rank.sparse for rank in side.ranks):
            yield f"{name}: its weights are large, and were digested at steps 1, 2, 4, 8, … and at the end only"


def _held(side: Recording) -> tuple[object, ...]:
    """Return what a recipe holds still; a seed without a flag is set by nothing."""
    return (sorted(side.recipe.flags), side.recipe.seed) if side.recipe.flags else ()


def _unlike_ranks(matched: Sequence[Pair]) -> Iterator[str]:
    for rank, a, b in matched:
        if a.record.framework != b.record.framework:
            yield (
                f"rank {rank} trained with {a.record.framework} on one side and {b.record.framework} on the other: "
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
