"""Read the numbers that an operation of torch is given besides tensors, such as a learning rate."""

from __future__ import annotations

from .... import wire
from .memory import is_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

_NUMBERS = (bool, int, float, complex)
_MOST = 64
"""Elements of a list that are read."""


def scalars(args: Any, kwargs: dict[str, Any]) -> dict[str, str]:
    """Return the numbers among the arguments of an operation, by place from 1 or by name; ``2[0]`` is in a list."""
    found: dict[str, str] = {}
    for place, value in enumerate(args):
        if type(value) in _NUMBERS:
            found[str(place + 1)] = repr(value)
        elif type(value) in (list, tuple):
            found.update(_elements(str(place + 1), value))
    for name, value in kwargs.items():
        if type(value) in _NUMBERS:
            found[name] = repr(value)
        elif type(value) in (list, tuple):
            found.update(_elements(name, value))
    return found


def _elements(name: str, values: Any) -> Iterator[tuple[str, str]]:
    for place, value in enumerate(values[:_MOST]):
        if type(value) in _NUMBERS:
            yield "%s[%d]" % (name, place), repr(value)


def starts(tensors: Sequence[Any], numbers: Sequence[int]) -> dict[str, str]:
    """Return where inputs begin in their memory, in elements, for those that are parts of it: ``x[i]`` is a view.

    ``numbers`` are those of their storages, negative if they have none.
    """
    return {
        wire.START + str(place + 1): str(tensor.storage_offset())
        for place, (tensor, number) in enumerate(zip(tensors, numbers))
        if number >= 0 and not is_whole(tensor)
    }


def entering(torch: Any, args: Any) -> dict[str, str]:
    """Return the number in a tensor without dimensions on the CPU through which it enters torch, else nothing."""
    tensor: Any = args[0]
    # A subclass, such as that of a tensor without memory, may have no value.
    if type(tensor) is not torch.Tensor or tensor.dim() or tensor.device.type != "cpu":
        return {}
    return {"1": repr(tensor.item())}
