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
    """Weights that are trained together: the tensors, or their digests once their owner was freed."""

    def __init__(self, tensors: Sequence[Any]) -> None:
        self.tensors = list(tensors)
        self.owner: weakref.ref[Any] | None = None
        self.digested: list[Weight] = []

    def members(self) -> list[tuple[Any, Weight | None]]:
        """Return each tensor, None if it was freed, and its digest if it has one."""
        if self.tensors:
            return [(tensor, None) for tensor in self.tensors]
        return [(weight.tensor(), weight) for weight in self.digested]


class HeldWeights:
    """All sets of weights of one framework in one process.

    A set is held until its owner is freed, such as an optimizer: a script may drop its model early. Then it is digested
    at once, if the reader can and no hook is running (``lock``), otherwise with the next step. When that is must not
    change the result, so weights that are still alive at the end are read again.
    """

    def __init__(self, reader: FrameworkReader, lock: Callable[[], Any]) -> None:
        self._reader, self._lock = reader, lock
        self._sets: dict[Any, _WeightSet] = {}

    def hold(self, key: Any, tensors: Sequence[Any], owner: Any) -> None:
        """Hold a set of weights until its ``owner`` is freed; without one, as long as it is among the last few."""
        self._let_go(None)
        held = self._sets.get(key)
        if held is None or len(held.tensors) != len(tensors) or any(a is not b for a, b in zip(held.tensors, tensors)):
            self._sets[key] = held = _WeightSet(tensors)
            if owner is not None:
                self._let_go(owner)
                held.owner = weakref.ref(owner, self._freed)
        if owner is None:
            # A functional update creates new tensors at every step. Keep only the last few sets.
            self._sets[key] = self._sets.pop(key)
            unowned = [k for k, s in self._sets.items() if s.owner is None]
            for old in unowned[:-_MOST_UNOWNED]:
                del self._sets[old]

    def _freed(self, _: Any) -> None:
        """Let go of the sets of an owner that was freed, which may happen in the middle of anything."""
        lock = self._lock()
        if not lock._is_owned() and lock.acquire(blocking=False):
            try:
                if self._reader.may_read():
                    with self._reader.undisturbed():
                        self._let_go(None)
            except Exception:
                return  # the next step, or the end, tries again, and records why it fails
            finally:
                lock.release()

    def _let_go(self, owner: Any) -> None:
        """Digest and release the sets of ``owner``, or, if that is None, the sets whose owner was freed."""
        for held in self._sets.values():
            if held.owner is not None and held.owner() is owner and held.tensors:
                held.digested, held.tensors = self._digested(held.tensors), []

    def sum_up(self) -> list[list[Weight]]:
        """Return the weights of each set; a weight that is in several counts for the last one of them."""
        sets, taken = [], set()
        for held in reversed(self._sets.values()):
            members = [(tensor, weight) for tensor, weight in held.members() if id(tensor) not in taken]
            alive = [tensor for tensor, _ in members if tensor is not None]
            taken |= {id(tensor) for tensor in alive}
            fresh = iter(self._digested(alive))
            sets.append([next(fresh) if tensor is not None else weight for tensor, weight in members])
        return [[weight for weight in found if weight is not None] for found in reversed(sets) if found]

    def _digested(self, tensors: Sequence[Any]) -> list[Weight]:
        return [Weight(t, part, self._reader) for t, part in zip(tensors, self._reader.parts(tensors))]


def summary(sets: Sequence[Sequence[Weight]]) -> dict[str, Any]:
    """Return what ``final`` says of weights; see wire.py."""
    digests = [
        digest.of_parts([(str(place), *weight.part[1:]) for place, weight in enumerate(summed)]) for summed in sets
    ]
    weights = [weight for summed in sets for weight in summed]
    return {
        "digest": digests[0] if len(digests) == 1 else digest.of_bytes("".join(digests).encode()),
        "sum": sum([weight.sum for weight in weights], 0.0).hex(),
        "params": len(weights),
        "devices": sorted({weight.device for weight in weights}),
        "weights": [weight.as_record() for weight in weights[: wire.MOST_WEIGHTS]],
    }
