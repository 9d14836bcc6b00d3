"""Select the flags that fix a culprit, best first."""

from collections.abc import Iterable, Mapping, Sequence

from detaudit.model import SEEDING, Cause, Source, SourceKind
from detaudit.recipe.applies import applicable, is_gpu
from detaudit.recipe.flags import Flag
from detaudit.recipe.ops import FixedBy, known

_MOST = 3

_SWITCHES: dict[tuple[str, FixedBy], tuple[str, ...]] = {
    ("torch", "deterministic-algorithms"): ("torch-deterministic-algorithms",),
    ("torch", "one-thread"): ("torch-one-thread", "openmp-one-thread"),
    ("tensorflow", "deterministic-algorithms"): ("tensorflow-op-determinism",),
    ("tensorflow", "one-thread"): ("tensorflow-one-thread",),
}
"""The flags that the table of operations means."""

_TRAINERS = ("torch", "tensorflow", "keras", "jax")
_IN_KERNELS = (Cause.KERNEL, Cause.THREADS)
"""Causes inside operations: there a flag that matches certain lines too is no less suitable."""


def fix_flags(
    catalogue: Iterable[Flag],
    cause: Cause,
    frameworks: Mapping[str, str],
    devices: Sequence[str],
    source: Source | None = None,
    op: str = "",
) -> tuple[Flag, ...]:
    """Return at most three flags that fix a culprit, best first; none if only an edit does.

    ``source`` is what a line of the user's code does: flags that match it are returned alone, with what they require
    for that. ``op`` is the operation whose results differ: if it is known to race, the table of operations says what
    fixes it. Otherwise the cause decides. ``frameworks`` and ``devices`` are as a run recorded them.
    """
    if source is not None and source.kind in (SEEDING if cause is Cause.SEED else {SourceKind.SYSTEM_VALUE}):
        return ()
    fit, _ = applicable((flag for flag in catalogue if flag.action in ("standard", "fallback")), frameworks, devices)
    by_op = _of_op(op, frameworks, devices) if op else None
    if by_op is not None:
        return tuple(flag for name in by_op for flag in fit if flag.id == name)[:_MOST]
    matching = [flag for flag in fit if source is not None and flag.matches.matches(source)]
    if matching:
        needed = {name for flag in matching for name in flag.requires}
        return _distinct(_sorted(matching, cause), (f for f in fit if f.id in needed and cause in f.causes))
    if source is not None and source.kind is SourceKind.COMPLETION_ORDER:
        return ()  # no flag makes others wait
    framework = _framework(op, frameworks) if op else ""
    suitable = _sorted((flag for flag in fit if _may_fix(flag, cause, source, framework)), cause)
    places = {name: place for flag in suitable[:1] for place, name in enumerate(flag.alternatives)}
    nearest = sorted((flag for flag in suitable if flag.id in places), key=lambda flag: places[flag.id])
    standard = [flag for flag in suitable if flag.action == "standard"]
    return _distinct(suitable[:1], (*standard, *nearest, *suitable))


def _of_op(op: str, frameworks: Mapping[str, str], devices: Sequence[str]) -> tuple[str, ...] | None:
    """Return the ids of what fixes an operation on the recorded devices, None for one that is not known to race."""
    framework = _framework(op, frameworks)
    places = sorted({"cuda" if is_gpu(one) else "cpu" for name in devices for one in name.split(",")}) or [
        "cpu",
        "cuda",
    ]
    rows = [row for place in reversed(places) if (row := known(op, framework, place)) is not None]
    if not rows:
        return None
    switches = (name for row in rows for name in _SWITCHES.get((framework, row.fixed_by), ()))
    return tuple(dict.fromkeys(switches))


def _framework(op: str, frameworks: Mapping[str, str]) -> str:
    """Return the framework of an operation; torch's names have ``aten`` in them."""
    if "aten" in op or "tensorflow" not in frameworks:
        return "torch"
    return "tensorflow"


def _may_fix(flag: Flag, cause: Cause, source: Source | None, framework: str) -> bool:
    if cause not in flag.causes or (framework and flag.framework in _TRAINERS and flag.framework != framework):
        return False
    # A flag that matches lines of another kind does nothing for this one.
    return not (source is not None and flag.matches) or cause in _IN_KERNELS


def _sorted(flags: Iterable[Flag], cause: Cause) -> list[Flag]:
    def place(flag: Flag) -> tuple[bool, int, bool]:
        rank = flag.causes.index(cause) if cause in flag.causes else len(flag.causes)
        return flag.action == "fallback", rank, flag.framework not in _TRAINERS

    return sorted(flags, key=place)


def _distinct(first: Iterable[Flag], rest: Iterable[Flag]) -> tuple[Flag, ...]:
    return tuple({flag.id: flag for flag in (*first, *rest)}.values())[:_MOST]
