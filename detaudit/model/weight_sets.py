"""The weights of a training one by one, at some of its steps: which of them differs first, and how far."""

from typing import TypeAlias

import msgspec

from detaudit.model.number import Number

WeightValue: TypeAlias = tuple[str, Number]
"""The digest of a weight, and the sum of its elements."""


class WeightKind(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor of the weights; ``name`` is that in the model that ran when it was first listed, if there was one."""

    dtype: str
    shape: tuple[int, ...]
    name: str | None = None


class WeightSet(msgspec.Struct, frozen=True, kw_only=True):
    """Weights that are updated together, such as by one optimizer.

    ``kinds`` are its first tensors, of ``count``; ``steps`` and ``final`` have the value of each of them. ``final`` is
    empty if the final weights are not known, or are not those of all sets, one after another.
    """

    kinds: tuple[WeightKind, ...]
    count: int
    steps: dict[int, tuple[WeightValue, ...]]
    final: tuple[WeightValue, ...] = ()

    def through(self, step: int) -> "WeightSet":
        """Return what was recorded through this step, as of a run that was ended there."""
        steps = {number: values for number, values in self.steps.items() if number <= step}
        return msgspec.structs.replace(self, steps=steps, final=())
