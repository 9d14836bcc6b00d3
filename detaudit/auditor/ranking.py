"""Which flag to try first: what the first difference and the lines behind it point to."""

from collections.abc import Iterable, Sequence

from detaudit.model import Source, Stage
from detaudit.recipe.flags import Cause, Flag

_EARLY: tuple[Cause, ...] = ("seed", "hash", "order", "data", "memory", "threads", "kernel")
_DATA: tuple[Cause, ...] = ("data", "seed", "order", "hash", "threads", "memory", "kernel")
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
    Stage.STEPS: ("order", "threads", "seed", "data", "hash", "memory", "kernel"),
}
"""The causes that a first difference at a stage points to, the likeliest first."""

_LAST_RESORT = 2
"""A flag that costs much stands behind those whose cause is one place less likely."""


def order(flags: Iterable[Flag], stage: Stage, sources: Sequence[Source] = ()) -> list[Flag]:
    """Return the flags as they should be tried, where the first difference is at ``stage``.

    First what holds a line of ``sources`` still, then by cause, at last by the order they came in.
    """
    text = "\n".join(source.what for source in sources)
    likely = LIKELY[stage]

    def place(flag: Flag) -> tuple[bool, int]:
        named = any(words in text for words in flag.mends)
        cause = min(likely.index(cause) for cause in flag.causes)
        return not named, 2 * cause + (_LAST_RESORT + 1 if flag.action == "fallback" else 0)

    return sorted(flags, key=place)
