"""What was recorded through a step. Of what is left in an event log, nothing is read for that."""

from collections.abc import Iterator, Mapping, Reversible
from functools import cached_property
from typing import cast

from detaudit.model.blocks import BlockedSteps, HeldSteps, Steps, block_of
from detaudit.model.number import Number


def digests_through(last: int, steps: Steps) -> Steps:
    """Return digests by step through the step ``last``."""
    if isinstance(steps, BlockedSteps):
        return _CutSteps(last, steps)
    return {step: digests for step, digests in steps.items() if step <= last}


def losses_through(last: int, losses: Mapping[int, Number]) -> Mapping[int, Number]:
    """Return losses by step through the step ``last``."""
    if isinstance(losses, dict):
        return {step: loss for step, loss in losses.items() if step <= last}
    return _CutLosses(last, losses)


class _CutSteps(BlockedSteps):
    def __init__(self, last: int, steps: BlockedSteps) -> None:
        self._last, self._steps = last, steps

    @cached_property
    def digests(self) -> Mapping[int, bytes]:
        """See BlockedSteps."""
        number = block_of(self._last)
        before = {one: digest for one, digest in self._steps.digests.items() if one < number}
        return {**before, **HeldSteps(self.block(number)).digests}

    def block(self, number: int) -> Steps:
        """See BlockedSteps."""
        if number > block_of(self._last):
            return {}
        found = self._steps.block(number)
        return {step: digests for step, digests in found.items() if step <= self._last}


class _CutLosses(Mapping[int, Number]):
    """Losses in the order in which they were recorded, of which those after a step are left out."""

    def __init__(self, last: int, losses: Mapping[int, Number]) -> None:
        self._last, self._losses = last, losses

    def __getitem__(self, step: int) -> Number:
        if step > self._last:
            raise KeyError(step)
        return self._losses[step]

    def __iter__(self) -> Iterator[int]:
        return (step for step in self._losses if step <= self._last)

    def __reversed__(self) -> Iterator[int]:
        return (step for step in reversed(cast("Reversible[int]", self._losses)) if step <= self._last)

    def __len__(self) -> int:
        return sum(1 for _ in self)
