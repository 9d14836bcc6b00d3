"""Walk through the arguments and the results of calls."""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_DEEPEST = 6


def leaves(value: Any, *, dataclasses: bool = False, depth: int = 0) -> Iterator[Any]:
    """Yield what nested lists, tuples and mappings hold, in order, and if requested the fields of dataclasses too.

    A collection that is nested deeper than a few levels, as one that contains itself, is yielded as it is.
    """
    items: Any = None
    if depth < _DEEPEST:
        if isinstance(value, (list, tuple)):
            items = value
        elif isinstance(value, Mapping):
            items = value.values()
        elif dataclasses and hasattr(type(value), "__dataclass_fields__"):
            items = [getattr(value, name, None) for name in type(value).__dataclass_fields__]
    if items is None:
        yield value
        return
    for item in items:
        yield from leaves(item, dataclasses=dataclasses, depth=depth + 1)
