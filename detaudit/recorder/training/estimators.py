"""Hold what estimators learned until the end, as weights.py holds the weights of optimizers."""

from __future__ import annotations

import sys
import weakref

from . import digest, learned
from .record import ValueReader
from .weights import Weight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class ArrayReader(ValueReader):
    """Reads arrays of any type, text too."""

    def array(self, value: Any) -> Any:
        """Return the array."""
        return value


class _Estimator:
    """An estimator, or another result of a fit, with what it learned."""

    def __init__(self, owner: Any, arrays: list[Any], parts: list[digest.Part]) -> None:
        self.owner: Callable[[], Any] = weakref.ref(owner) if hasattr(owner, "__weakref__") else lambda: None
        self.arrays, self.parts = arrays, parts
        self.weights: list[Weight] = []


class Estimators:
    """What all estimators of a process learned, in the order of their first fits, as HeldWeights holds weights.

    The order must not depend on when one is freed, which may be up to the garbage collector.
    """

    def __init__(self, reader: ArrayReader) -> None:
        self._reader = reader
        self._fitted: list[_Estimator] = []

    def hold(self, owner: Any, arrays: list[Any], parts: list[digest.Part]) -> None:
        """Hold what ``owner`` learned until it is freed."""
        found = _Estimator(owner, arrays, parts)
        place = next((place for place, one in enumerate(self._fitted) if one.owner() is owner), None)
        if place is None:
            self._fitted.append(found)
        else:
            self._fitted[place] = found
        for one in self._fitted:
            if one is not found and one.owner() is None:
                self._release(one)

    def _release(self, one: _Estimator) -> None:
        if not one.weights:
            one.weights = [Weight(array, part, self._reader) for array, part in zip(one.arrays, one.parts)]
            one.arrays = []

    def sum_up(self) -> list[list[Weight]]:
        """Return what each estimator learned; one that is alive is read again, because a script may change it."""
        for one in self._fitted:
            owner = one.owner()
            if owner is not None:
                one.arrays, one.weights = read(owner), []
                one.parts = self._reader.parts(one.arrays)
            self._release(one)
        return [one.weights for one in self._fitted]


def read(value: Any) -> list[Any]:
    """Return the arrays that were learned, first one with the digest of everything else.

    Raises UndigestedError if there is something else without a digest.
    """
    found = learned.Learned(value)
    return [sys.modules["numpy"].frombuffer(found.rest, dtype="S16"), *found.arrays]
