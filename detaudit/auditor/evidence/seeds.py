"""Which lines of the user's code bring randomness that no seed fixed, from what several runs saw."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from detaudit.auditor.evidence.event_logs import Process, told_from
from detaudit.model import Source

Seen = dict[tuple[str, int, str], tuple[tuple[str, str], ...]]
"""(file, line, function) and the (kind, value) pairs that it gave there; wire.py says which kinds there are."""


def seen_in(processes: Iterable[Process], cwd: Path) -> Seen:
    """Return what one run saw; files below its working directory are told relative to that."""
    found: Seen = {}
    for process in processes:
        for source in process.sources:
            if source.kind != "setting":
                key = (told_from(source.file, cwd), source.line, source.what)
                found[key] = (*found.get(key, ()), (source.kind, source.value))
    return found


_DIFFERS = {
    "seed": "{}() with a seed that differs between runs",
    "clock": "{}() with a seed that follows the clock",
    "process-id": "{}() with the process id as its seed",
    "listing-order": "{}() in an order that differs between runs",
    "completion-order": "{}() in an order of arrival that differs between runs",
    "listing-files": "{}() found other files in each run",
}
_ALWAYS = {
    "unseeded": "{}() without a seed",
    "completion-order-option": "{} hands out batches as workers finish them",
    "entropy": "{}() gives other values in every run",
}
_RANKS = (*_DIFFERS, *_ALWAYS)
"""What was seen to differ comes first."""


def unfixed(runs: Sequence[Seen]) -> tuple[Source, ...]:
    """Return the lines that took no seed, or not the same one in every run, or listed files in another order."""
    words = _DIFFERS | _ALWAYS
    sources = []
    for file, line, what in sorted({key for run in runs for key in run}):
        seen = [run[file, line, what] for run in runs if (file, line, what) in run]
        kind = _kind(seen)
        if kind is not None:
            text = words[kind].format(what) + (_global_generator(seen) if kind == "unseeded" else "")
            sources.append(Source(file=file, line=line, what=text, kind=kind))
    return tuple(sorted(sources, key=lambda source: _RANKS.index(source.kind)))


def _kind(seen: Sequence[tuple[tuple[str, str], ...]]) -> str | None:
    """Return what a line did, from what each run that came by saw; None where it did the same in all of them."""
    kinds = {kind for run in seen for kind, _ in run}
    if kinds == {"completion-order"}:
        return "completion-order" if _arrived_unlike([{value for _, value in run} for run in seen]) else None
    if not _differ([{value for _, value in run} for run in seen]):
        return next((kind for kind in _ALWAYS if kind in kinds), None)
    if kinds == {"listing-order"}:
        names = [{value.partition("/")[2] for _, value in run} for run in seen]
        return "listing-files" if _differ(names) else "listing-order"
    # A number may be near the clock by chance, but hardly in every run.
    told = [kind for kind in ("clock", "process-id") if all(kind in {k for k, _ in run} for run in seen)]
    return (told or [kind for kind in ("unseeded", "seed") if kind in kinds] or ["seed"])[0]


def _global_generator(seen: Sequence[tuple[tuple[str, str], ...]]) -> str:
    """Return which generator it was that had no seed, ``""`` where the call itself could have been given one."""
    named = {value for run in seen for kind, value in run if kind == "unseeded" and value}
    return "".join(f": nobody seeded {generator}" for generator in sorted(named))


def _differ(values: Sequence[set[str]]) -> bool:
    """Whether two runs saw different values; a run that came by less often than another is no proof of that."""
    return any(not (a <= b or b <= a) for a in values for b in values)


def _arrived_unlike(runs: Sequence[set[str]]) -> bool:
    """Whether two runs saw another order after as many arrivals in a thread of the same name; see wire.py."""
    orders: list[dict[str, set[str]]] = []
    for run in runs:
        told = defaultdict(set)
        for when, _, order in (value.rpartition("/") for value in run):
            told[when].add(order)
        orders.append(told)
    moments = {when for told in orders for when in told}
    return any(_differ([told[when] for told in orders if when in told]) for when in moments)
