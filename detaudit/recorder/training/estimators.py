"""Hold what estimators learned until the end, as weights.py holds the weights of optimizers."""

from __future__ import annotations

import sys
import weakref

from . import learned
from .record import ValueReader
from .summary import Summary, Weight, fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import digest

_FOLD_FROM = 64


class ArrayReader(ValueReader):
    """Reads arrays of any type, text too."""

    def array(self, value: Any) -> Any:
        """Return the array."""
        return value


class _Estimator:
    """An estimator, or another result of a fit, with the digests of what it learned."""

    def __init__(self, owner: Any, reader: ArrayReader) -> None:
        self.owner: Callable[[], Any] = weakref.ref(owner) if hasattr(owner, "__weakref__") else lambda: None
        self._reader = reader
        self._weights: list[Weight] = []

    def learned(self, arrays: list[Any], parts: list[digest.Part]) -> None:
        """Note what it learned last."""
        self._weights = [Weight(array, part, self._reader) for array, part in zip(arrays, parts)]

    def read(self, freed: Any = None) -> None:
        """Read it again, because a script may change it; also when it is ``freed``."""
        owner = self.owner() if freed is None else freed
        if owner is not None:
            arrays = read(owner)
            self.learned(arrays, self._reader.parts(arrays))

    @property
    def gone(self) -> bool:
        """Whether it was freed."""
        return self.owner() is None

    def summary(self) -> Summary:
        """Return what remains of it."""
        return Summary(weights=self._weights)


_held: dict[int, _Estimator] = {}
"""The estimators that were fitted and not freed, by their id()."""


def freed(owner: Any) -> None:
    """Read an estimator that is being freed: it may have been changed since its fit."""
    found = _held.pop(id(owner), None)
    if found is not None and found.owner() in (owner, None):
        found.read(owner)


class Estimators:
    """What all estimators of a process learned, in the order of their first fits.

    The order must not depend on when one is freed, which may be up to the garbage collector.
    """

    def __init__(self, reader: ArrayReader) -> None:
        self._reader = reader
        self._fitted: list[_Estimator | Summary] = []
        self._known: dict[int, _Estimator] = {}
        self._fold_from = _FOLD_FROM

    def hold(self, owner: Any, arrays: list[Any], parts: list[digest.Part]) -> None:
        """Hold what ``owner`` learned."""
        found = self._known.get(id(owner))
        if found is None or found.owner() is not owner:
            found = self._known[id(owner)] = _Estimator(owner, self._reader)
            self._fitted.append(found)
            if learned.is_estimator(owner):
                _held[id(owner)] = found
        found.learned(arrays, parts)
        if len(self._fitted) > self._fold_from:
            self._fitted = fold(self._fitted)
            self._known = {place: one for place, one in self._known.items() if not one.gone}
            self._fold_from = 2 * len(self._fitted) + _FOLD_FROM

    def sum_up(self) -> Summary:
        """Return what to write of all estimators."""
        total = Summary()
        for one in self._fitted:
            if isinstance(one, _Estimator):
                one.read()
            total.join(one.summary())
        return total


def read(value: Any, seeds: list[tuple[str, Any]] | None = None) -> list[Any]:
    """Return the arrays that were learned, first one with the digest of everything else; [] if nothing was learned.

    Raises UndigestedError if there is something else without a digest. ``seeds`` is as of Learned.
    """
    found = learned.Learned(value, seeds)
    return [] if found.empty else [sys.modules["numpy"].frombuffer(found.rest, dtype="S16"), *found.arrays]
