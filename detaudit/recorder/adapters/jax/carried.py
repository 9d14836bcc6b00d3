"""Record what a JAX training carries from step to step beside its weights, such as batch statistics.

A training call returns it, and the next one takes it. That shows at the second call, so the state of the first step
is not recorded. The collections that a model of Flax returns outside of a gradient count too, whoever made them.
"""

from __future__ import annotations

import weakref

from ...training import digest
from ...training.weights import is_due
from .reader import Held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .plan import Plan
    from .reader import JaxReader


class CarriedState:
    """The arrays of floats that came back last, by name."""

    def __init__(self, reader: JaxReader) -> None:
        self._reader = reader
        self.forget()

    def forget(self) -> None:
        """Start over, as in a forked child."""
        self._held: dict[str, Held] = {}
        self._latest: dict[Plan, list[Callable[[], Any]]] = {}
        self._steps = 0
        self._new = False

    def enter(self, plan: Plan, inputs: Sequence[Any]) -> None:
        """Handle the inputs of a training call: outputs of earlier ones among them, but for weights, are carried."""
        given = {id(array) for place, array in enumerate(inputs) if place not in plan.weights}
        for earlier, references in self._latest.items():
            if not earlier.carried:
                outputs = enumerate([reference() for reference in references])
                returned = [place for place, array in outputs if id(array) in given and _has_floats(array)]
                known = {*earlier.updated, *earlier.passed}
                earlier.carried += [place for place in returned if place not in known]  # other traces share the list

    def leave(self, plan: Plan, outputs: Sequence[Any]) -> None:
        """Handle the outputs of that call."""
        if plan.carried and self._latest:  # at the first call it may be known from another thread, by chance
            self._keep({plan.names[place]: outputs[place] for place in plan.carried})
        self._latest[plan] = [reference_to(array) for array in outputs]

    def collections(self, named: dict[str, Any]) -> None:
        """Handle collections that a model returned, by name."""
        self._keep({name: array for name, array in named.items() if _has_floats(array)})

    def _keep(self, named: dict[str, Any]) -> None:
        self._new = self._new or bool(named)
        self._held.update({name: Held(array) for name, array in named.items()})

    def held(self) -> list[Held]:
        """Return what is held until the end. What a later call took and whose buffer it reused came back changed."""
        self._held = {name: held for name, held in self._held.items() if not _is_deleted(held.array)}
        return list(self._held.values())

    def at_step(self) -> str | None:
        """Return the digest of what is carried, None if nothing new is or if it is not digested at this step."""
        self._steps += 1
        if not self._new:
            return None
        self._new = False
        tensors = self.held()
        return digest.of_parts(self._reader.parts(tensors)) if is_due(self._steps, self._reader, tensors) else None

    def end(self) -> None:
        """Do nothing: arrays never change."""

    def names(self) -> dict[int, str]:
        """Return nothing: arrays have no names."""
        return {}

    def at_end(self, of_task: bool = False) -> list[list[Any]]:
        """Return the arrays that came back last; see wire.py."""
        parts = self._reader.parts(self.held())
        return [
            ["", name, True, dtype, [int(size) for size in shape], "%016x" % words]
            for name, (_, dtype, shape, words) in zip(self._held, parts)
        ]


def _is_deleted(array: Any) -> bool:
    return hasattr(array, "is_deleted") and bool(array.is_deleted())


def _has_floats(array: Any) -> bool:
    # Counters and the keys of random generators are left out.
    name = str(getattr(getattr(array, "dtype", None), "name", ""))
    return name.startswith(("float", "bfloat", "complex"))


def reference_to(array: Any) -> Callable[[], Any]:
    """Return a function that returns the array, or None once the script dropped it."""
    # JAX returns plain numbers with some debugging options; those cannot be matched.
    return weakref.ref(array) if hasattr(array, "dtype") else lambda: None
