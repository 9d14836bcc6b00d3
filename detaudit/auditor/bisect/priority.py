"""Decide which flag to try first, from the first difference and the lines behind it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from detaudit.model import Cause, Source, SourceMatch, Stage
from detaudit.recipe.flags import Flag

_EARLY = tuple(map(Cause, ("seed", "hash", "order", "data", "memory", "threads", "kernel")))
_DATA = tuple(map(Cause, ("data", "order", "hash", "kernel", "memory", "threads", "seed")))
_UNNAMED = tuple(map(Cause, ("data", "kernel", "memory", "threads", "seed", "hash", "order")))
"""For batches that differ if no line of the user's code introduces randomness or an order."""

_LATE = tuple(map(Cause, ("kernel", "memory", "threads", "data", "seed", "hash", "order")))
_UNHOOKED = tuple(map(Cause, ("seed", "kernel", "hash", "data", "order", "memory", "threads")))
_STEPS = tuple(map(Cause, ("order", "threads", "seed", "data", "hash", "memory", "kernel")))

LIKELY: dict[Stage, tuple[Cause, ...]] = {
    Stage.INIT: _EARLY,
    Stage.RNG: _EARLY,
    Stage.BATCH: _DATA,
    Stage.FORWARD: _LATE,
    Stage.BACKWARD: _LATE,
    Stage.REDUCE: _LATE,
    Stage.HYPERPARAMETERS: _EARLY,
    Stage.UPDATE: _LATE,
    Stage.STATE: _LATE,
    Stage.OUTPUT: _UNHOOKED,
    Stage.STDOUT: _UNHOOKED,
    Stage.ARTIFACT: _UNHOOKED,
    Stage.SAVED: _UNHOOKED,
    Stage.PRINTED: _UNHOOKED,
    Stage.EXIT: _UNHOOKED,
    Stage.RETURNED: _UNHOOKED,
    Stage.STEPS: _STEPS,
}
"""The causes that a first difference at a stage points to, the likeliest first."""

_LAST_RESORT = 2
"""A flag that costs much comes after those whose cause is one place less likely."""

_OBSERVED: tuple[Cause, ...] = (Cause.SEED, Cause.DATA, Cause.ORDER)
"""Causes whose lines the recorder observes: if it saw none, a flag that only fixes such lines comes later too."""


@dataclass(frozen=True)
class Clues:
    """What a trial that differs shows: the stage, the lines behind it, the generators that began differently."""

    stage: Stage
    sources: Sequence[Source] = ()
    generators: Sequence[str] = ()


def matching(match: SourceMatch, sources: Iterable[Source]) -> bool:
    """Whether any of these lines is one that a flag fixes, or a variation brings out."""
    return any(match.matches(source) for source in sources)


def order(flags: Iterable[Flag], clues: Clues) -> tuple[list[Flag], int]:
    """Return the flags in the order in which to try them, and how many of them at once.

    First the seeds of generators that were observed to differ, which are tried together; then what fixes a line of the
    user's code; then by cause, and last in the order of the catalogue.
    """
    unnamed = clues.stage is Stage.BATCH and not clues.sources
    likely = _UNNAMED if unnamed else LIKELY[clues.stage]

    def seeds(flag: Flag) -> bool:
        return bool(flag.call) and Cause.SEED in flag.causes and (flag.module or flag.framework) in clues.generators

    def place(flag: Flag) -> tuple[bool, bool, int]:
        named = matching(flag.matches, clues.sources)
        cause = min(likely.index(cause) for cause in flag.causes)
        unseen = unnamed and bool(flag.matches) and flag.causes[0] in _OBSERVED
        far = (_LAST_RESORT + 1 if flag.action == "fallback" else 0) + (_LAST_RESORT + 1 if unseen else 0)
        return not seeds(flag), not named, 2 * cause + far

    ordered = sorted(flags, key=place)
    return ordered, max(1, sum(map(seeds, ordered)))
