"""Sum up what was trained, as ``final`` in wire.py describes it."""

from __future__ import annotations

import weakref

from ... import wire
from . import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Protocol

    from .digest import Part
    from .reader import FrameworkReader

    class Set(Protocol):
        """Weights that were trained together."""

        @property
        def gone(self) -> bool:
            """Whether all its tensors were freed."""

        def summary(self) -> Summary:
            """Return what remains of it."""


def weight_record(part: Part, total: float) -> list[Any]:
    """Return dtype, shape, digest and sum of a weight, as described for ``final`` in wire.py."""
    _, dtype, shape, words = part
    return [dtype, [int(size) for size in shape], "%016x" % words, float(total).hex()]


class Weight:
    """The sum and digest of a weight. ``tensor()`` is None once the weight was freed."""

    def __init__(self, tensor: Any, part: Part, reader: FrameworkReader) -> None:
        self.part, self.sum, self.device = part, reader.total(tensor), reader.device(tensor)
        try:
            self.tensor: Callable[[], Any] = weakref.ref(tensor)
        except TypeError:  # such as a NumPy scalar
            self.tensor = lambda: None

    def as_record(self) -> list[Any]:
        """Return dtype, shape, digest and sum, as described for ``final`` in wire.py."""
        return weight_record(self.part, self.sum)


class Summary:
    """What is written of sets of weights: their digests and sums in the order of their ``number``."""

    gone = True

    def __init__(self, number: int = -1, weights: Sequence[Weight] = ()) -> None:
        self.number = number
        self._digests = [_digest(weights)] if weights else []
        self._sums = [sum([weight.sum for weight in weights], 0.0)] if weights else []
        self._params = len(weights)
        self._devices = {weight.device for weight in weights}
        self._weights = [weight.as_record() for weight in weights[: wire.MOST_WEIGHTS]]

    def summary(self) -> Summary:
        """Return itself."""
        return self

    def join(self, other: Summary) -> None:
        """Add the sets that follow."""
        self._digests += other._digests
        self._sums += other._sums
        self._params += other._params
        self._devices |= other._devices
        self._weights += other._weights[: max(0, wire.MOST_WEIGHTS - len(self._weights))]

    def as_record(self) -> dict[str, Any]:
        """Return what ``final`` says of weights; see wire.py."""
        several = len(self._digests) != 1
        return {
            "digest": digest.of_bytes("".join(self._digests).encode()) if several else self._digests[0],
            "sum": sum(self._sums, 0.0).hex(),
            "params": self._params,
            "devices": sorted(self._devices),
            "weights": self._weights,
        }


def fold(sets: Iterable[Set]) -> list[Any]:
    """Return the sets in this order, and of adjacent ones that are gone one summary."""
    found: list[Any] = []
    for one in sets:
        if not one.gone:
            found.append(one)
        elif found and isinstance(found[-1], Summary):
            found[-1].join(one.summary())
        else:
            found.append(one.summary())
    return found


def _digest(weights: Sequence[Weight]) -> str:
    return digest.of_parts([(str(place), *weight.part[1:]) for place, weight in enumerate(weights)])
