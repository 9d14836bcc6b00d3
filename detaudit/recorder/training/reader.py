"""Define how an adapter reads the tensors of its framework."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .digest import Part


class FrameworkReader:
    """Reads the tensors of one framework. An adapter overrides all methods except ``parts`` and ``kept``.

    If ``may_read()``, it reads wherever the script is, in the context of its ``undisturbed()``.
    """

    def may_read(self) -> bool:
        """Return whether tensors can be read now, not only in the hooks of the framework."""
        return False

    def undisturbed(self) -> Any:
        """Return a context in which nothing that the script set affects, or observes, what is read."""
        raise NotImplementedError

    def parts(self, tensors: Sequence[Any]) -> list[Part]:
        """Return the part of each tensor in a digest, named by its index."""
        return [self.part(str(place), tensor) for place, tensor in enumerate(tensors)]

    def part(self, name: str, tensor: Any) -> Part:
        """Return (name, dtype, shape, digest) of a tensor."""
        raise NotImplementedError

    def total(self, tensor: Any) -> float:
        """Return the sum of the elements in float64."""
        raise NotImplementedError

    def size(self, tensor: Any) -> int:
        """Return the number of bytes of a tensor."""
        raise NotImplementedError

    def kept(self, tensor: Any, copy: bool) -> Any:
        """Return what has the present value of a tensor later, None if that takes a copy, and none may be made."""
        return tensor  # immutable

    def device(self, tensor: Any) -> str:
        """Return the device of a tensor."""
        raise NotImplementedError

    def scalar(self, tensor: Any) -> float | None:
        """Return the value of a tensor with one element, None for others."""
        raise NotImplementedError
