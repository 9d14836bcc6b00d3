"""Compare the values that a script monitors: which probe is the first to differ between two runs."""

import hashlib
from collections.abc import Iterable, Sequence

from detaudit.model.difference import Probe, ProbeDifference
from detaudit.runs.log import Process
from detaudit.runs.log_records import ProbeLine

Key = tuple[str, str, int]
"""Name, kind and number: threads may interleave the probes of several names in another order each time."""

Probes = dict[Key, ProbeLine]
"""The probes of one process, in order of execution."""

Seen = dict[int, Probes]
"""The probes of one run by rank, as in its table; processes that trained nothing follow those that did."""


class Comparison:
    """Compare the probes of each run with those of the first."""

    def __init__(self) -> None:
        self._first: tuple[int, Seen] | None = None
        self._found: list[ProbeDifference] = []

    def add(self, run: int, processes: Iterable[Process]) -> str:
        """Add a run, and return a text that is equal for two runs if all their probes are."""
        seen = seen_in(processes)
        self._first = self._first or (run, seen)
        first, base = self._first
        difference = first_probe_difference(base, seen, (first, run))
        self._found += [difference] if difference else []
        return result_key(seen)

    @property
    def names(self) -> int:
        """The number of names in the first run; a value and its gradient have one name."""
        return len({name for probes in (self._first or (0, {}))[1].values() for name, _, _ in probes})

    @property
    def first(self) -> ProbeDifference | None:
        """The earliest difference."""
        return min(self._found, key=lambda d: (d.step or 0, d.runs), default=None)


def seen_in(processes: Iterable[Process]) -> Seen:
    """Return the probes of one run."""
    seen: Seen = {}
    rank = 0
    for process in sorted(processes, key=lambda process: not process.trained):
        if process.probes:
            seen[rank] = {(line.name, line.kind, line.n): line for line in process.probes}
        rank += len(process.trained) or bool(process.probes)
    return seen


def result_key(seen: Seen) -> str:
    """Return a text that is equal for two runs if all their probes are."""
    key = hashlib.blake2b(digest_size=16)
    for rank, probes in seen.items():
        key.update(repr((rank, sorted((name, line.digest) for name, line in probes.items()))).encode())
    return key.hexdigest()


def first_probe_difference(a: Seen, b: Seen, runs: tuple[int, int]) -> ProbeDifference | None:
    """Return the first probe that differs between run a and run b, in the rank that differs first."""
    ranks = sorted({*a, *b})
    differing = [d for rank in ranks if (d := _first(a.get(rank, {}), b.get(rank, {}), rank, runs)) is not None]
    return min(differing, key=lambda d: (d.step or 0, d.rank), default=None)


def _first(ours: Probes, theirs: Probes, rank: int, runs: tuple[int, int]) -> ProbeDifference | None:
    order = list(ours)
    position = next((i for i, key in enumerate(order) if _digest(theirs, key) != ours[key].digest), len(order))
    extra, after = _first_extra(ours, theirs, order)
    if extra is not None and after < position:
        position, line = after + 1, extra
    elif position < len(order):
        line = ours[order[position]]
    else:
        return None
    key = (line.name, line.kind, line.n)
    shown = (ours[key].value if key in ours else None, theirs[key].value if key in theirs else None)
    absent = [run for run, probes in zip(runs, (ours, theirs), strict=True) if key not in probes]
    return ProbeDifference(
        name=line.name,
        occurrence=line.n,
        step=line.step,
        gradient=line.kind == "gradient",
        runs=runs,
        rank=rank,
        values=shown,
        missing=absent[0] if absent else None,
        last_match=_probe(ours[order[position - 1]]) if position else None,
    )


def _first_extra(ours: Probes, theirs: Probes, order: Sequence[Key]) -> tuple[ProbeLine | None, int]:
    """Return the first probe that only the other run has, and the place in ``order`` of the probe before it."""
    before = None
    for key, line in theirs.items():
        if key not in ours:
            return line, order.index(before) if before is not None else -1
        before = key
    return None, len(order)


def _digest(probes: Probes, key: Key) -> str | None:
    return probes[key].digest if key in probes else None


def _probe(line: ProbeLine) -> Probe:
    return Probe(name=line.name, occurrence=line.n, step=line.step, gradient=line.kind == "gradient")
