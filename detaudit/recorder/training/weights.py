"""Hold the weights of trainings until their final digests are computed."""

from __future__ import annotations

import weakref

from ... import wire
from . import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .digest import Part
    from .reader import FrameworkReader

_MOST_UNOWNED = 4

EVERY_STEP_BYTES = 256 * 2**20
"""Weights of up to this size are digested at every step, larger ones at steps 1, 2, 4, 8, … and at the end.

Their size is the same in all runs of an audit, and so are the steps at which they are digested.
"""


def is_due(step: int, reader: FrameworkReader, tensors: Sequence[Any]) -> bool:
    """Return whether tensors are digested at this step."""
    return step & (step - 1) == 0 or sum([reader.size(tensor) for tensor in tensors]) <= EVERY_STEP_BYTES


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
        _, dtype, shape, words = self.part
        return [dtype, [int(size) for size in shape], "%016x" % words, float(self.sum).hex()]


class _WeightSet:
    """Weights that are trained together, held until their owner is freed, since a script may drop its model early."""

    def __init__(self, tensors: Sequence[Any]) -> None:
        self.tensors = list(tensors)
        self.owner: weakref.ref[Any] | None = None
        self.summed: list[Weight] = []

    def leave_out(self, tensors: Sequence[Any]) -> None:
        """Forget the sums of these weights, because training continues with them in another set."""
        ids = {id(tensor) for tensor in tensors}
        self.summed = [weight for weight in self.summed if id(weight.tensor()) not in ids]


class HeldWeights:
    """All sets of weights of one framework in one process."""

    def __init__(self, reader: FrameworkReader) -> None:
        self._reader = reader
        self._sets: dict[Any, _WeightSet] = {}

    def hold(self, key: Any, tensors: Sequence[Any], owner: Any) -> None:
        """Hold a set of weights. Once its ``owner`` is freed, it is summed up and released."""
        self._let_go(None)
        held = self._sets.get(key)
        if held is None or len(held.tensors) != len(tensors) or any(a is not b for a, b in zip(held.tensors, tensors)):
            self._sets[key] = held = _WeightSet(tensors)
            for other in self._sets.values():
                other.leave_out(tensors)
            if owner is not None:
                self._let_go(owner)
                held.owner = weakref.ref(owner)
        if owner is None:
            # A functional update creates new tensors at every step. Keep only the last few sets.
            self._sets[key] = self._sets.pop(key)
            unowned = [k for k, s in self._sets.items() if s.owner is None]
            for old in unowned[:-_MOST_UNOWNED]:
                del self._sets[old]

    def sum_up(self) -> list[list[Weight]]:
        """Return the weights of each set that was released, then those that are still held, each once."""
        alive = {id(t): t for held in self._sets.values() for t in held.tensors}
        sets = [*[held.summed for held in self._sets.values()], self._summed(list(alive.values()))]
        return [summed for summed in sets if summed]

    def _let_go(self, owner: Any) -> None:
        """Sum up and release the sets of ``owner``, or, if that is None, the sets whose owner was freed."""
        for held in self._sets.values():
            if held.owner is not None and held.owner() is owner and held.tensors:
                others = {id(t) for other in self._sets.values() if other is not held for t in other.tensors}
                held.summed = self._summed([t for t in held.tensors if id(t) not in others])
                held.tensors = []

    def _summed(self, tensors: Sequence[Any]) -> list[Weight]:
        return [Weight(t, part, self._reader) for t, part in zip(tensors, self._reader.parts(tensors))]


def summary(sets: Sequence[Sequence[Weight]]) -> dict[str, Any]:
    """Return what ``final`` says of weights; see wire.py."""
    digests = [digest.of_parts([weight.part for weight in summed]) for summed in sets]
    weights = [weight for summed in sets for weight in summed]
    return {
        "digest": digests[0] if len(digests) == 1 else digest.of_bytes("".join(digests).encode()),
        "sum": sum([weight.sum for weight in weights], 0.0).hex(),
        "params": len(weights),
        "devices": sorted({weight.device for weight in weights}),
        "weights": [weight.as_record() for weight in weights[: wire.MOST_WEIGHTS]],
    }
