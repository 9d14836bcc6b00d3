"""Which flag to try first: what the first difference and the lines behind it point to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from detaudit.model import Source, Stage
from detaudit.recipe.flags import Cause, Flag

_EARLY: tuple[Cause, ...] = ("seed", "hash", "order", "data", "memory", "threads", "kernel")
_DATA: tuple[Cause, ...] = ("data", "order", "hash", "kernel", "memory", "threads", "seed")
_UNNAMED: tuple[Cause, ...] = ("data", "kernel", "memory", "threads", "seed", "hash", "order")
"""Of batches that differ where no line of the user's code brings randomness or an order."""

_LATE: tuple[Cause, ...] = ("kernel", "memory", "threads", "data", "seed", "hash", "order")

LIKELY: dict[Stage, tuple[Cause, ...]] = {
    Stage.INIT: _EARLY,
    Stage.RNG: _EARLY,
    Stage.BATCH: _DATA,
    Stage.FORWARD: _LATE,
    Stage.BACKWARD: _LATE,
    Stage.UPDATE: _LATE,
    Stage.STDOUT: ("seed", "kernel", "hash", "data", "order", "memory", "threads"),
    Stage.ARTIFACT: ("seed", "kernel", "hash", "data", "order", "memory", "threads"),
    Stage.RETURNED: ("seed", "kernel", "hash", "data", "order", "memory", "threads"),
    Stage.STEPS: ("order", "threads", "seed", "data", "hash", "memory", "kernel"),
}
"""The causes that a first difference at a stage points to, the likeliest first."""

_LAST_RESORT = 2
"""A flag that costs much stands behind those whose cause is one place less likely."""

_SEEN: tuple[Cause, ...] = ("seed", "data", "order")
"""Causes whose lines the recorder sees: where it saw none, what only mends such a line stands back too."""


@dataclass(frozen=True)
class Clues:
    """What a trial that differs tells: the stage, the lines behind it, the generators that began unlike."""

    stage: Stage
    sources: Sequence[Source] = ()
    generators: Sequence[str] = ()


def order(flags: Iterable[Flag], clues: Clues) -> tuple[list[Flag], int]:
    """Return the flags as they should be tried, and how many of them at once.

    First the seeds of generators that were seen to differ, which are tried together; then what holds a line of the
    user's code still; then by cause, at last by the order they came in.
    """
    text = "\n".join(source.what for source in clues.sources)
    unnamed = clues.stage is Stage.BATCH and not clues.sources
    likely = _UNNAMED if unnamed else LIKELY[clues.stage]

    def seeds(flag: Flag) -> bool:
        return bool(flag.call) and "seed" in flag.causes and (flag.module or flag.framework) in clues.generators

    def place(flag: Flag) -> tuple[bool, bool, int]:
        named = any(words in text for words in flag.mends)
        cause = min(likely.index(cause) for cause in flag.causes)
        unseen = unnamed and bool(flag.mends) and flag.causes[0] in _SEEN
        far = (_LAST_RESORT + 1 if flag.action == "fallback" else 0) + (_LAST_RESORT + 1 if unseen else 0)
        return not seeds(flag), not named, 2 * cause + far

    ordered = sorted(flags, key=place)
    return ordered, max(1, sum(map(seeds, ordered)))
