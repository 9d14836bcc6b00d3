"""In which rows and columns of a tensor elements differ."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from detaudit.model import TensorGrid

MOST = 64
"""Equal parts of the rows, and of the columns, in which elements that differ are counted."""


def sides(shape: Sequence[int]) -> tuple[int, int] | None:
    """Return the rows and the columns of a tensor as a matrix, None if it has only one row or one column.

    Its first dimensions are the rows and the others the columns, as many of either as makes the smaller side longest.
    """
    found = [(math.prod(shape[:place]), math.prod(shape[place:])) for place in range(1, len(shape))]
    best = max(found, key=min, default=(1, 1))
    return best if min(best) > 1 else None


class Grid:
    """Counts elements by their rows and columns, in at most MOST x MOST parts."""

    def __init__(self, rows: int, columns: int) -> None:
        self._rows, self._columns = rows, columns
        self._high, self._wide = min(MOST, rows), min(MOST, columns)
        self._counts: Counter[int] = Counter()

    def add(self, places: Iterable[int]) -> None:
        """Add elements by their places in C order."""
        rows, columns, high, wide = self._rows, self._columns, self._high, self._wide
        self._counts.update(
            place // columns * high // rows * wide + place % columns * wide // columns for place in places
        )

    def result(self) -> TensorGrid:
        """Return the elements in each part."""
        cells = [self._counts[place] for place in range(self._high * self._wide)]
        rows = tuple(tuple(cells[start : start + self._wide]) for start in range(0, len(cells), self._wide))
        return TensorGrid(rows=self._rows, columns=self._columns, counts=rows)
