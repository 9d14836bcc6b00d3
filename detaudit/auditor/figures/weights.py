"""Which weights of the runs of a group differ first, and how far."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from detaudit.model import RunRecord
from detaudit.model.figures import WeightCell, WeightRow, Weights
from detaudit.model.number import Number
from detaudit.model.weight_sets import WeightSet, WeightValue

MOST_ROWS = 24
MOST_COLUMNS = 12

_Column: TypeAlias = int | None
"""A step, or None for the end."""


def weights(records: Mapping[int, RunRecord], rank: int) -> Weights | None:
    """Return which weights of this rank differ between runs, by number; the first one is compared with the others.

    Return None if no weight was listed at the same step by all runs, or if the first run is alone. What is not known of
    all runs counts if it differs.
    """
    sets = [record.parts[rank].weight_sets if rank < len(record.parts) else () for record in records.values()]
    if len(sets) < 2 or not sets[0]:
        return None
    columns: list[_Column] = [*sorted({step for one in sets[0] for step in one.steps}), None]
    rows = [row for row in _rows(sets, columns) if any(row.cells)]
    if not rows:
        return None
    listed = [place for place in range(len(columns)) if any(row.cells[place] for row in rows)]
    differing = sorted([row for row in rows if _first(row) < len(columns)], key=_first)
    first = min(map(_first, differing), default=0)
    shown = _shown(listed, first)
    return Weights(
        runs=tuple(records),
        steps=tuple(columns[place] for place in shown),
        rows=tuple(_cut(row, shown) for row in differing[:MOST_ROWS]),
        differing=len(differing),
        first=sum(_first(row) == first for row in differing),
        count=len(rows),
        listed=tuple(columns[place] for place in listed),
        unlisted=sum(max(0, one.count - len(one.kinds)) for one in sets[0]),
    )


def _rows(sets: Sequence[Sequence[WeightSet]], columns: Sequence[_Column]) -> Iterator[WeightRow]:
    """Yield a row for each weight of the first run; a set of the others counts if its tensors have the same shapes."""
    before = 0
    for number, one in enumerate(sets[0]):
        shapes = [(kind.dtype, kind.shape) for kind in one.kinds]
        same = [
            found[number]
            if number < len(found) and [(kind.dtype, kind.shape) for kind in found[number].kinds] == shapes
            else None
            for found in sets
        ]
        values = [[_values(found, column) for found in same] for column in columns]
        for place, kind in enumerate(one.kinds):
            cells = tuple(_cell([found[place] if found else None for found in column]) for column in values)
            yield WeightRow(kind=kind, place=before + place + 1, cells=cells)
        before += one.count


def _values(found: WeightSet | None, column: _Column) -> Sequence[WeightValue]:
    if found is None:
        return ()
    return found.final if column is None else found.steps.get(column, ())


def _cell(values: Sequence[WeightValue | None]) -> WeightCell | None:
    """Return what a cell says of the values of all runs, None if they match as far as they are known, and some are not.

    The first run must have one.
    """
    first, known = values[0], [one for one in values if one]
    if first is None:
        return None
    differing = [total for digest, total in known if digest != first[0]]
    if not differing:
        return WeightCell(digests=1) if len(known) == len(values) else None
    apart = [_apart(first[1], total) for total in differing]
    finite = [one for one in apart if one is not None]
    digests = len({digest for digest, _ in known})
    return WeightCell(digests=digests, apart=max(finite) if len(finite) == len(apart) else None)


def _apart(a: Number, b: Number) -> float | None:
    """Return how far two sums are apart, relative to the larger one; None if one is not finite."""
    if not isinstance(a, float | int) or not isinstance(b, float | int):
        return None
    larger = max(abs(a), abs(b))
    return abs(a / larger - b / larger) if larger else 0.0


def _first(row: WeightRow) -> int:
    """Return the first column in which a weight differs, the number of columns if it does in none."""
    differs = (place for place, cell in enumerate(row.cells) if cell is not None and cell.digests > 1)
    return next(differs, len(row.cells))


def _shown(listed: Sequence[int], first: int) -> list[int]:
    """Return the columns that are shown: from the one before the first difference on, and the last."""
    before = [place for place in listed if place < first]
    start = max(0, min(len(before) - 1, len(listed) - MOST_COLUMNS))
    shown = listed[start:]
    return [*shown[: MOST_COLUMNS - 1], shown[-1]] if len(shown) > MOST_COLUMNS else [*shown]


def _cut(row: WeightRow, shown: Sequence[int]) -> WeightRow:
    return WeightRow(kind=row.kind, place=row.place, cells=tuple(row.cells[place] for place in shown))
