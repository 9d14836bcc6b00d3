"""Walk through the arguments and the results of calls."""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DEEPEST = 6


def leaves(value: Any, *, dataclasses: bool = False, depth: int = 0) -> list[Any]:
    """Return what nested lists, tuples and mappings hold, in order, and if requested the fields of dataclasses too.

    A collection that is nested deeper than a few levels, as one that contains itself, is returned as it is.
    """
    items = _items(value, dataclasses) if depth < _DEEPEST else None
    if items is None:
        return [value]
    found: list[Any] = []
    for item in items:
        found += leaves(item, dataclasses=dataclasses, depth=depth + 1)
    return found


def _items(value: Any, dataclasses: bool) -> Any:
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, (dict, Mapping)):
        return value.values()
    if dataclasses and hasattr(type(value), "__dataclass_fields__"):
        return [getattr(value, name, None) for name in type(value).__dataclass_fields__]
    return None
