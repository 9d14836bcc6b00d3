"""How an adapter reads its framework's tensors."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .digest import Part


class Reader:
    """Reads tensors of one framework; all methods but ``parts`` are for the adapter to write."""

    def parts(self, tensors: Sequence[Any]) -> list[Part]:
        """Return what each tensor adds to a digest, named by its place."""
        return [self.part(str(place), tensor) for place, tensor in enumerate(tensors)]

    def part(self, name: str, tensor: Any) -> Part:
        """Return (name, dtype, shape, word digest)."""
        raise NotImplementedError

    def total(self, tensor: Any) -> float:
        """Return the sum of the elements in float64."""
        raise NotImplementedError

    def size(self, tensor: Any) -> int:
        """Return the bytes of a tensor."""
        raise NotImplementedError

    def device(self, tensor: Any) -> str:
        """Return where a tensor lives."""
        raise NotImplementedError

    def scalar(self, tensor: Any) -> float | None:
        """Return the value of a tensor of one element, else None."""
        raise NotImplementedError
