"""The losses of the runs of a group, as curves, and how far they are from those of the first run."""

import math
from collections.abc import Iterator, Mapping, Sequence

from detaudit.auditor.evidence.log_blocks import KnownLosses, LoggedLosses
from detaudit.auditor.figures.bins import bins
from detaudit.model import Number, RunRecord
from detaudit.model.figures import Curve, Distance, Losses, Point, Steps


def losses(records: Mapping[int, RunRecord], rank: int) -> Losses | None:
    """Return the losses of runs, by number, of which the first is the one that the others are compared with.

    They are of this rank, or of the first one that recorded any. Return None if none did.
    """
    place = next((place for place in (rank, *_ranks(records)) if _recorded(records, place)), None)
    if place is None:
        return None
    same: list[tuple[list[int], dict[int, Number]]] = []
    for run, one in held(records, place).items():
        runs = next((runs for runs, other in same if other == one), None)
        if runs is None:
            same.append(([run], one))
        else:
            runs.append(run)
    alike = [(tuple(runs), one) for runs, one in same]
    reference = alike[0][1]
    steps = sorted(set().union(*(one for _, one in alike)))
    marks = [first for _, one in alike[1:] if (first := first_difference(steps, reference, one)) is not None]
    into = bins(steps, marks)
    inside = list(_split(steps, into))
    return Losses(
        rank=place,
        bins=tuple(into),
        curves=tuple(
            Curve(
                runs=runs,
                points=tuple(_point([one[step] for step in steps if step in one]) for steps in inside),
                distances=tuple(_distance(steps, reference, one) for steps in inside) if one is not reference else (),
            )
            for runs, one in alike
        ),
        first=min(marks, default=None),
        dtype=_dtype(records, place),
    )


def held(records: Mapping[int, RunRecord], rank: int) -> dict[int, dict[int, Number]]:
    """Return the losses of this rank by step, of each run that has such a rank.

    What the event logs of several runs have in common is read once.
    """
    known: KnownLosses = {}
    parts = {run: record.parts[rank] for run, record in records.items() if rank < len(record.parts)}
    return {
        run: part.losses.held(known) if isinstance(part.losses, LoggedLosses) else dict(part.losses)
        for run, part in parts.items()
    }


def _ranks(records: Mapping[int, RunRecord]) -> range:
    return range(max((len(record.parts) for record in records.values()), default=0))


def _recorded(records: Mapping[int, RunRecord], rank: int) -> bool:
    return any(rank < len(record.parts) and record.parts[rank].losses for record in records.values())


def _dtype(records: Mapping[int, RunRecord], rank: int) -> str | None:
    """Return the type of the losses if all runs whose ends are known have the same, None otherwise."""
    ends = [part.final for record in records.values() for part in record.parts[rank : rank + 1]]
    found = {final.loss_dtype for final in ends if final is not None}
    return found.pop() if len(found) == 1 else None


def first_difference(steps: Sequence[int], a: Mapping[int, Number], b: Mapping[int, Number]) -> int | None:
    """Return the first of these ascending steps at which two runs have different losses, None if there is none."""
    return next((step for step in steps if step in a and step in b and a[step] != b[step]), None)


def _split(steps: Sequence[int], into: Sequence[Steps]) -> Iterator[list[int]]:
    """Yield the steps of each bin."""
    rest = iter(steps)
    step = next(rest, None)
    for _, last in into:
        held = []
        while step is not None and step <= last:
            held.append(step)
            step = next(rest, None)
        yield held


def _point(found: Sequence[Number]) -> Point | None:
    if not found:
        return None
    finite = [one for one in found if isinstance(one, float | int)]
    broken = len(finite) < len(found)
    if not finite:
        return Point(broken=broken)
    return Point(first=finite[0], least=min(finite), greatest=max(finite), last=finite[-1], broken=broken)


def _distance(steps: Sequence[int], a: Mapping[int, Number], b: Mapping[int, Number]) -> Distance | None:
    """Return how far two losses are apart at most, None if the runs share none of these steps."""
    pairs = [(a[step], b[step]) for step in steps if step in a and step in b]
    if not pairs:
        return None
    differing = [(x, y) for x, y in pairs if x != y]
    apart = [
        abs(x - y) if isinstance(x, float | int) and isinstance(y, float | int) else math.inf for x, y in differing
    ]
    greatest = max(apart, default=0.0)
    return Distance(greatest=greatest if math.isfinite(greatest) else None, equal=not differing)
