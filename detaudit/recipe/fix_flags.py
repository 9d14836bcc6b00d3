"""Which flags of the catalogue mend what is to blame, the best first."""

from collections.abc import Iterable, Mapping, Sequence

from detaudit.recipe.applies import applicable, is_gpu
from detaudit.recipe.flags import Cause, Flag
from detaudit.recipe.ops import MendedBy, known

_MOST = 3

_SWITCHES: dict[tuple[str, MendedBy], tuple[str, ...]] = {
    ("torch", "deterministic-algorithms"): ("torch-deterministic-algorithms",),
    ("torch", "one-thread"): ("torch-one-thread", "openmp-one-thread"),
    ("tensorflow", "deterministic-algorithms"): ("tensorflow-op-determinism",),
    ("tensorflow", "one-thread"): ("tensorflow-one-thread",),
}
"""The flags that are meant by the table of operations."""

_OWN_SEED = ("with a seed that", "as its seed")
"""How a line is told of that brings a seed of its own, which no flag can take from it."""

_ARRIVAL = "in an order of arrival"
"""How a line is told of that takes what is ready first: no switch makes others wait."""

_TRAINERS = ("torch", "tensorflow", "keras", "jax")
_IN_KERNELS = ("kernel", "threads")
"""Causes that no word about a line tells of: there a flag that mends certain lines too is not the less apt."""


def cures(
    catalogue: Iterable[Flag],
    cause: Cause,
    frameworks: Mapping[str, str],
    devices: Sequence[str],
    words: str = "",
    op: str = "",
) -> tuple[Flag, ...]:
    """Return at most three flags that mend a culprit, the best first; none where only an edit does.

    ``words`` say what a line of the user's code does: what holds such a line still is named alone, with what it needs
    for that. ``op`` is the operation whose results differ: where it is known to race, the table of operations says what
    mends it. Else it goes by the cause. ``frameworks`` and ``devices`` are as a run recorded them.
    """
    if cause == "seed" and any(own in words for own in _OWN_SEED):
        return ()
    fit, _ = applicable((flag for flag in catalogue if flag.action in ("auto", "fallback")), frameworks, devices)
    by_op = _of_op(op, frameworks, devices) if op else None
    if by_op is not None:
        return tuple(flag for name in by_op for flag in fit if flag.id == name)[:_MOST]
    named = _sorted((flag for flag in fit if any(one in words for one in flag.mends)), cause)
    if named:
        needed = {name for flag in named for name in flag.requires}
        return _distinct(named, (flag for flag in fit if flag.id in needed and cause in flag.causes))
    if _ARRIVAL in words:
        return ()
    framework = _framework(op, frameworks) if op else ""
    held = _sorted((flag for flag in fit if _may_hold(flag, cause, words, framework)), cause)
    stand_ins = {name: place for flag in held[:1] for place, name in enumerate(flag.instead)}
    nearest = sorted((flag for flag in held if flag.id in stand_ins), key=lambda flag: stand_ins[flag.id])
    plain = [flag for flag in held if flag.action == "auto"]
    return _distinct(held[:1], (*plain, *nearest, *held))


def _of_op(op: str, frameworks: Mapping[str, str], devices: Sequence[str]) -> tuple[str, ...] | None:
    """Return the ids of what mends an operation on the devices that were seen, None for one that is not known."""
    framework = _framework(op, frameworks)
    places = sorted({"cuda" if is_gpu(one) else "cpu" for name in devices for one in name.split(",")}) or [
        "cpu",
        "cuda",
    ]
    rows = [row for place in reversed(places) if (row := known(op, framework, place)) is not None]
    if not rows:
        return None
    switches = (name for row in rows for name in _SWITCHES.get((framework, row.mended_by), ()))
    return tuple(dict.fromkeys(switches))


def _framework(op: str, frameworks: Mapping[str, str]) -> str:
    """Return whose an operation is: torch's names say so."""
    if "aten" in op or "tensorflow" not in frameworks:
        return "torch"
    return "tensorflow"


def _may_hold(flag: Flag, cause: Cause, words: str, framework: str) -> bool:
    if cause not in flag.causes or (framework and flag.framework in _TRAINERS and flag.framework != framework):
        return False
    # What holds lines of another kind still does nothing for this one.
    return not (words and flag.mends) or cause in _IN_KERNELS


def _sorted(flags: Iterable[Flag], cause: Cause) -> list[Flag]:
    def place(flag: Flag) -> tuple[bool, int, bool]:
        held = flag.causes.index(cause) if cause in flag.causes else len(flag.causes)
        return flag.action == "fallback", held, flag.framework not in _TRAINERS

    return sorted(flags, key=place)


def _distinct(first: Iterable[Flag], rest: Iterable[Flag]) -> tuple[Flag, ...]:
    return tuple({flag.id: flag for flag in (*first, *rest)}.values())[:_MOST]
