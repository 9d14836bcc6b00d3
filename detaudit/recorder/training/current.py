"""Collect the inputs and losses of the current step of a training."""

from __future__ import annotations

from . import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .digest import Part
    from .reader import FrameworkReader

_MOST = 256


class LastLoss:
    """The last loss with one element, and its dtype; both are None without one."""

    def __init__(self, value: float | None = None, dtype: str | None = None) -> None:
        self.value, self.dtype = value, dtype

    def as_record(self) -> dict[str, str | None]:
        """Return what ``final`` in wire.py says of it."""
        return {"loss": None if self.value is None else self.value.hex(), "loss_dtype": self.dtype or None}


class CurrentStep:
    """The inputs and losses since the last step.

    A gradient that is not followed by a step, such as one by the inputs of a model, leaves its own behind. So that a
    script may compute any number of them, the oldest are folded into one part of the digest.
    """

    def __init__(self, reader: FrameworkReader) -> None:
        self._reader = reader
        self._inputs: list[Part] = []
        self._of_losses = 0
        self._losses: list[Any] = []
        self._folded: list[Part] = []
        self._dtype: str | None = None

    @property
    def pending(self) -> bool:
        """Whether there is a loss."""
        return bool(self._losses)

    def add_inputs(self, parts: Sequence[Part]) -> None:
        """Add inputs of a model."""
        self._inputs += parts

    def add_loss(self, tensor: Any, dtype: str | None = None) -> None:
        """Add a loss. All inputs so far led to it. ``dtype`` is its type if it was converted, empty if not known."""
        self._losses.append(tensor)
        self._dtype = dtype
        self._of_losses = len(self._inputs)
        if len(self._losses) > _MOST:
            self._folded = [_one(self._folded + self._reader.parts(self._losses[:-1]))]
            self._losses = self._losses[-1:]
            self._inputs = [_one(self._inputs)] if self._inputs else []
            self._of_losses = len(self._inputs)

    def take_over(self, other: CurrentStep) -> None:
        """Take over what another training collected."""
        self._dtype = other._dtype if other._losses else self._dtype
        self._losses, other._losses = self._losses + other._losses, []
        self._folded, other._folded = self._folded + other._folded, []
        self._inputs, other._inputs = self._inputs + other._inputs, []
        self._of_losses, other._of_losses = len(self._inputs), 0

    def take(self) -> tuple[list[Part], list[Part], LastLoss]:
        """Return the parts of the inputs and of the losses, and the last loss, and start the next step.

        Without an optimizer, the end of a step is detected only after the inputs of the next forward pass, which stay.
        """
        inputs = self._inputs[: self._of_losses] if self._losses else self._inputs
        losses = self._folded + self._reader.parts(self._losses)
        last = self._losses[-1:]
        self._inputs = self._inputs[len(inputs) :]
        self._losses, self._folded, self._of_losses = [], [], 0
        dtype = losses[-1][1] if last and self._dtype is None else self._dtype
        return inputs, losses, LastLoss(self._reader.scalar(last[0]), dtype) if last else LastLoss()

    def discard(self) -> None:
        """Drop the losses and what led to them."""
        self._inputs = self._inputs[self._of_losses :]
        self._losses, self._folded, self._of_losses = [], [], 0


def _one(parts: Sequence[Part]) -> Part:
    return "folded", "", (len(parts),), int(digest.of_parts(parts)[:16], 16)
