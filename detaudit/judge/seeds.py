"""Find lines of user code that introduce unseeded randomness, from the records of several runs."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from detaudit import wire
from detaudit.model import Source, SourceKind
from detaudit.runs.log import Process, display_path


class Call(NamedTuple):
    """What one run recorded of a call; wire.py describes it."""

    kind: SourceKind
    value: str
    takes: tuple[str, ...] = ()


Calls = tuple[Call, ...]

Seen = dict[tuple[str, int, str], Calls]
"""What one run recorded, by (file, line, function)."""

_SETTING = "setting"
"""A call that changes what a flag sets; effective_settings.py reads these."""


def seen_in(processes: Iterable[Process], cwd: Path) -> Seen:
    """Return what one run recorded; files below its working directory are relative to it."""
    seen: Seen = {}
    for process in processes:
        for source in process.sources:
            if source.kind != _SETTING:
                key = (display_path(source.file, cwd), source.line, source.what)
                seen[key] = (*seen.get(key, ()), Call(SourceKind(source.kind), source.value, source.takes))
    return seen


_ALWAYS = (
    SourceKind.UNSEEDED,
    SourceKind.COMPLETION_ORDER_OPTION,
    SourceKind.ENTROPY,
    SourceKind.UNORDERED_OPERATION,
    SourceKind.SHARED_GENERATOR,
)
"""What must or may differ, whether or not it was observed to."""

_SEEDS = frozenset({SourceKind.SEED, SourceKind.CLOCK, SourceKind.PROCESS_ID, SourceKind.UNSEEDED})
"""What a call that seeds may be."""

_RANKS = tuple(SourceKind)
"""What was observed to differ comes first."""


def sources(runs: Sequence[Seen]) -> tuple[Source, ...]:
    """Return lines that used no seed, used different seeds, or listed files or took results in different orders."""
    suspects = []
    for file, line, call in sorted({key for run in runs for key in run}):
        seen = [run[file, line, call] for run in runs if (file, line, call) in run]
        kind = _kind(seen)
        if kind is not None:
            generators = _global_generators(seen) if kind is SourceKind.UNSEEDED else ()
            takes = () if generators else next((one.takes for run in seen for one in run if one.takes), ())
            suspects.append(Source(file=file, line=line, kind=kind, call=call, generators=generators, takes=takes))
    return tuple(sorted(suspects, key=lambda one: (_is_parameter(one), _RANKS.index(one.kind))))


def _is_parameter(source: Source) -> bool:
    """Whether a fit was given a seed that differs: another line may have drawn it."""
    return source.kind is SourceKind.SEED and source.call.endswith(")")


def of_clock(runs: Sequence[Seen]) -> tuple[Source, ...]:
    """Return the lines that seed from the clock in every run, whether or not the seeds differ."""
    always = (
        set.intersection(*({key for key, calls in run.items() if _from_clock(calls)} for run in runs)) if runs else ()
    )
    return tuple(Source(file=file, line=line, kind=SourceKind.CLOCK, call=call) for file, line, call in sorted(always))


def _from_clock(calls: Calls) -> bool:
    return any(one.kind is SourceKind.CLOCK for one in calls)


def _kind(seen: Sequence[Calls]) -> SourceKind | None:
    """Return what a line did, from what each run recorded there; None if it did the same in all of them."""
    kinds = {one.kind for run in seen for one in run}
    values = [{one.value for one in run} for run in seen]
    if kinds == {SourceKind.COMPLETION_ORDER}:
        return SourceKind.COMPLETION_ORDER if _completion_differs(values) else None
    if kinds == {SourceKind.HYPERPARAMETER} and not _differ(values):
        return None
    if not _differ(_comparable(values) if kinds <= _SEEDS else values):
        return next((kind for kind in _ALWAYS if kind in kinds), None)
    if kinds == {SourceKind.LISTING_ORDER}:
        names = [{one.value.partition("/")[2] for one in run} for run in seen]
        return SourceKind.LISTING_FILES if _differ(names) else SourceKind.LISTING_ORDER
    if kinds == {SourceKind.HYPERPARAMETER}:
        return SourceKind.HYPERPARAMETER
    # A number may be near the clock by chance, but hardly in every run.
    near = (SourceKind.CLOCK, SourceKind.PROCESS_ID)
    always = [kind for kind in near if all(kind in {one.kind for one in run} for run in seen)]
    return (always or [kind for kind in (SourceKind.UNSEEDED, SourceKind.SEED) if kind in kinds] or [SourceKind.SEED])[
        0
    ]


def _global_generators(seen: Sequence[Calls]) -> tuple[str, ...]:
    """Return the unseeded global generators it drew from; none if the call itself could have been given a seed."""
    return tuple(sorted({one.value for run in seen for one in run if one.kind is SourceKind.UNSEEDED and one.value}))


def _differ(values: Sequence[set[str]] | Sequence[set[int]]) -> bool:
    """Whether two runs recorded different values; fewer calls in one of them are no proof of that."""
    return any(not (a <= b or b <= a) for a in values for b in values)


def _comparable(seeds: Sequence[set[str]]) -> list[set[int]]:
    """Return of each run the numbers of the seeds that every run would have recorded; see MOST_SEEDS in wire.py."""
    runs = [sorted(map(wire.seed_number, one)) for one in seeds]
    highest = min((one[wire.MOST_SEEDS - 1] for one in runs if len(one) >= wire.MOST_SEEDS), default=math.inf)
    return [{number for number in one if number <= highest} for one in runs]


def _completion_differs(runs: Sequence[set[str]]) -> bool:
    """Whether two runs had different orders after the same number of results in a thread; see wire.py."""
    orders: list[dict[str, set[str]]] = []
    for run in runs:
        by_moment = defaultdict(set)
        for moment, _, order in (value.rpartition("/") for value in run):
            by_moment[moment].add(order)
        orders.append(by_moment)
    moments = {moment for by_moment in orders for moment in by_moment}
    return any(_differ([one[moment] for one in orders if moment in one]) for moment in moments)
