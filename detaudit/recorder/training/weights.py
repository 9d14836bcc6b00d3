"""Weights held until the end, their sums, and each weight at powers of two."""

from __future__ import annotations

import itertools
import sys
import weakref

from ... import wire
from ..process import guard
from . import digest

# Sum up what was trained, as ``final`` in wire.py describes it.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..process.log import PendingEvents
    from .digest import FrameworkReader, Part
    from .models import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Protocol

    from .digest import FrameworkReader, Part

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
    folded: list[Any] = []
    for one in sets:
        if not one.gone:
            folded.append(one)
        elif folded and isinstance(folded[-1], Summary):
            folded[-1].join(one.summary())
        else:
            folded.append(one.summary())
    return folded


def _digest(weights: Sequence[Weight]) -> str:
    return digest.of_parts([(str(index), *weight.part[1:]) for index, weight in enumerate(weights)])


# List weights one by one at steps 1, 2, 4, 8, …, to find which of them differs first, and how far.


_MOST = 512
"""Tensors that are listed of a set, so that the lines of a training take little more room than its final weights."""


def is_listed(step: int) -> bool:
    """Return whether weights are listed one by one at this step."""
    return step & (step - 1) == 0


class EachWeight:
    """Lists the weights of one training. It keeps none of them, only a number for each set."""

    def __init__(self, reader: FrameworkReader, events: PendingEvents) -> None:
        self._reader, self._events = reader, events
        self._numbers: dict[Any, int] = {}

    def add(
        self, line: dict[str, Any], key: Any, tensors: Sequence[Any], parts: Sequence[Part], states: Sequence[State]
    ) -> None:
        """Complete the ``weights`` of wire.py with a set of weights, whose ``parts`` were digested already."""
        key, listed = (key, len(parts)), tensors[:_MOST]
        if key not in self._numbers:
            names = {tensor_id: name for one in states for tensor_id, name in one.names().items()}
            line["names"] = [names.get(id(tensor)) for tensor in listed]
        line["set"] = self._numbers.setdefault(key, len(self._numbers))
        line["count"] = len(parts)
        line["tensors"] = [weight_record(part, self._reader.total(tensor)) for tensor, part in zip(listed, parts)]
        self._events.add_line(line["step"], line)


# Hold the weights of trainings until their final digests are computed.


_MOST_UNOWNED = 4
_FOLD_FROM = 64

EVERY_STEP_BYTES = 256 * 2**20
"""Weights of up to this size are digested at every step, larger ones at steps 1, 2, 4, 8, … and at the last one.

Their size is the same in all runs of an audit, and so are the steps at which they are digested.
"""


def is_due(step: int, reader: FrameworkReader, tensors: Sequence[Any]) -> bool:
    """Return whether tensors are digested at this step."""
    return step & (step - 1) == 0 or sum([reader.size(tensor) for tensor in tensors]) <= EVERY_STEP_BYTES


class _WeightSet:
    """Weights that are trained together: the tensors, or their digests once their owner was freed."""

    def __init__(self, number: int, key: Any, tensors: Sequence[Any]) -> None:
        self.number, self.key, self.tensors = number, key, list(tensors)
        self.owner: weakref.ref[Any] | None = None
        self.weights: list[Weight] = []

    def consists_of(self, tensors: Sequence[Any]) -> bool:
        """Return whether these are its tensors, in this order."""
        return len(self.tensors) == len(tensors) and all([a is b for a, b in zip(self.tensors, tensors)])

    def members(self) -> list[tuple[Any, Weight | None]]:
        """Return each tensor, None if it was freed, and its digest if it has one."""
        if self.tensors:
            return [(tensor, None) for tensor in self.tensors]
        return [(weight.tensor(), weight) for weight in self.weights]

    @property
    def gone(self) -> bool:
        """Whether all its tensors were freed."""
        return not self.tensors and not any([weight.tensor() is not None for weight in self.weights])

    def summary(self) -> Summary:
        """Return what remains of a set that is gone."""
        return Summary(self.number, self.weights)


class HeldWeights:
    """All sets of weights of one framework in one process.

    A set is held until its owner is freed, such as an optimizer: a script may drop its model early. Then it is digested
    at once, if the reader can and no hook is running (``lock``), otherwise with the next step. When that is must not
    change the result, so weights that are still alive at the end are read again.
    """

    def __init__(self, reader: FrameworkReader, lock: Callable[[], Any]) -> None:
        self._reader, self._lock = reader, lock
        self._numbers = itertools.count()
        self._owned: dict[Any, _WeightSet] = {}
        self._of_owner: dict[int, _WeightSet] = {}
        self._unowned: dict[Any, _WeightSet] = {}
        self._ended: list[_WeightSet] = []
        self._released: list[_WeightSet | Summary] = []
        self._fold_from = _FOLD_FROM

    def hold(self, key: Any, tensors: Sequence[Any], owner: Any) -> None:
        """Hold a set of weights until its ``owner`` is freed; without one, as long as it is among the last few."""
        self._release_ended()
        if owner is None:
            # A functional update creates new tensors at every step.
            self._unowned.pop(key, None)
            self._unowned[key] = _WeightSet(next(self._numbers), key, tensors)
            if len(self._unowned) > _MOST_UNOWNED:
                del self._unowned[next(iter(self._unowned))]
            return
        known = self._owned.get(key)
        if known is None or not known.consists_of(tensors):
            self._owned[key] = weight_set = _WeightSet(next(self._numbers), key, tensors)
            owner_id = id(owner)
            before = self._of_owner.pop(owner_id, None)
            if before is not None and before.key != key:
                self._release(before)
            self._of_owner[owner_id] = weight_set
            weight_set.owner = weakref.ref(owner, lambda _: self._freed(owner_id))

    def drop_references(self, tensors: Sequence[Any]) -> None:
        """Drop all weak references to these tensors. Those of sets that were released count as they were then."""
        for released in self._released:
            if isinstance(released, _WeightSet):
                for weight in released.weights:
                    if any([weight.tensor() is one for one in tensors]):
                        weight.tensor = lambda: None

    def _freed(self, owner: int, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        """Let go of the set of an owner that was freed, which may happen in the middle of anything.

        ``is_finalizing`` is not looked up, as the modules of an interpreter that ends are emptied.
        """
        self._ended.append(self._of_owner.pop(owner))
        if is_finalizing():  # nothing is written any more, and torch may fail in the middle of its own end
            return
        lock = self._lock()
        if lock._is_owned() or not lock.acquire(blocking=False):
            return
        try:
            if self._reader.may_read():
                with self._reader.undisturbed():
                    self._release_ended()
        except BaseException as error:  # the next step, or the end, tries again, and records why it fails
            guard.postpone(error)
        finally:
            lock.release()

    def _release_ended(self) -> None:
        while self._ended:
            self._release(self._ended[-1])
            self._ended.pop()
        if len(self._released) > self._fold_from:
            self._released = [one for one in fold(self._in_order()) if not self._is_held(one)]
            self._fold_from = 2 * len(self._released) + _FOLD_FROM

    def _release(self, weight_set: _WeightSet) -> None:
        weight_set.weights, weight_set.tensors, weight_set.owner = self._digested(weight_set.tensors), [], None
        self._released.append(weight_set)
        if self._owned.get(weight_set.key) is weight_set:
            del self._owned[weight_set.key]

    def _is_held(self, one: _WeightSet | Summary) -> bool:
        return isinstance(one, _WeightSet) and bool(one.tensors)

    def _in_order(self) -> list[_WeightSet | Summary]:
        sets = [*self._released, *self._owned.values(), *self._unowned.values()]
        return sorted(sets, key=lambda one: one.number)

    def sum_up(self) -> Summary:
        """Return what to write of all sets; a weight that is in several counts for the last one of them."""
        self._release_ended()
        summaries: list[Summary] = []
        taken: set[int] = set()
        for entry in reversed(self._in_order()):
            if isinstance(entry, Summary):
                summaries.append(entry)
                continue
            members = [(tensor, weight) for tensor, weight in entry.members() if id(tensor) not in taken]
            alive = [tensor for tensor, _ in members if tensor is not None]
            taken.update([id(tensor) for tensor in alive])
            fresh = iter(self._digested(alive))
            weights = [next(fresh) if tensor is not None else weight for tensor, weight in members]
            summaries.append(Summary(entry.number, [weight for weight in weights if weight is not None]))
        total = Summary()
        for one in reversed(summaries):
            total.join(one)
        return total

    def _digested(self, tensors: Sequence[Any]) -> list[Weight]:
        return [Weight(t, part, self._reader) for t, part in zip(tensors, self._reader.parts(tensors))]
