"""Digest the gradients of one rank as its backward pass computes them, before they are combined with those of others.

DistributedDataParallel adds up gradients during the backward pass, a script may do so after it. What the optimizer is
given then differs on all ranks if it does on one.
"""

from __future__ import annotations

import sys

from ...process.ranks import rank_and_world
from ...training import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ...training.steps import Training
    from .hooks import Hooks
    from .reader import TorchReader


class _Hook:
    """Digests the gradient of one weight. Unless it says that it is not saved, torch warns when the weight is."""

    __torch_unserializable__ = True

    def __init__(self, take: Callable[[int, Any], None], place: int) -> None:
        self._take, self._place = take, place

    def __call__(self, gradient: Any) -> None:
        self._take(self._place, gradient)


class OwnGradients:
    """Hooks weights, whose gradients are digested one by one until the step ends."""

    def __init__(self, reader: TorchReader) -> None:
        self._reader = reader
        self._parts: dict[int, list[digest.Part]] = {}
        self._due = False
        self._take: Callable[[int, Any], None] = self._digest

    def install(self, hooks: Hooks) -> None:
        """Let these make the hooks."""
        self._take = hooks.anywhere(self._digest)

    def before_backward(self, weights: Sequence[Any], training: Training) -> None:
        """Put a hook on each weight that has none."""
        self._due = training.due(training.steps + 1, weights)
        for weight in weights if self._due else ():
            known = weight._backward_hooks or {}
            if weight.requires_grad and weight.is_leaf and not any([type(one) is _Hook for one in known.values()]):
                weight.register_hook(_Hook(self._take, id(weight)))

    def _digest(self, place: int, gradient: Any) -> None:
        if self._due:
            self._parts.setdefault(place, []).extend(self._reader.parts([gradient]))

    def forget(self) -> None:
        """Drop what was digested: the gradients were thrown away."""
        self._parts.clear()

    def taken(self, weights: Sequence[Any]) -> str | None:
        """Return one digest of the gradients of these weights since their last step, None if there are none."""
        found = [part for weight in weights for part in self._parts.pop(id(weight), ())]
        return digest.of_parts(found) if found else None


def has_others() -> bool:
    """Return whether other ranks train with this process."""
    if (rank_and_world()[1] or 1) > 1:
        return True
    group = sys.modules.get("torch.distributed")
    return bool(group and group.is_available() and group.is_initialized() and group.get_world_size() > 1)
