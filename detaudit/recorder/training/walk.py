"""Walk through nested values."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping

# Walk lists, tuples, named tuples and dicts, and rebuild only those in which a part was replaced.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


_DEEPEST_STRUCTURE = 32


def walk(value: Any, name: str, visit: Callable[[Any, str], Any], depth: int = 0) -> Any:
    """Call ``visit(part, name)`` for each part in order, and return ``value`` with the returned parts in their places.

    This is ``value`` itself if no part was replaced. An empty structure is a part.

    Raises ValueError if the structure is nested too deeply, such as a list that contains itself.
    """
    if depth > _DEEPEST_STRUCTURE:
        raise ValueError(f"nested more than {_DEEPEST_STRUCTURE} levels deep")
    if isinstance(value, Mapping) and len(value):
        keys = list(value)
        old = [value[key] for key in keys]
        new = [walk(item, f"{name}[{_shown(key)}]", visit, depth + 1) for key, item in zip(keys, old)]
        return value if _same(old, new) else _mapping(value, keys, new)
    if isinstance(value, (list, tuple)) and len(value):
        fields = getattr(value, "_fields", None)  # of a named tuple
        names = [f".{field}" for field in fields] if fields else [f"[{i}]" for i in range(len(value))]
        old = list(value)
        new = [walk(item, name + part, visit, depth + 1) for part, item in zip(names, old)]
        return value if _same(old, new) else _sequence(value, new)
    return visit(value, name)


def _same(old: Sequence[Any], new: Sequence[Any]) -> bool:
    return all([a is b for a, b in zip(old, new)])


def _mapping(value: Any, keys: Sequence[Any], new: Sequence[Any]) -> Any:
    if not isinstance(value, MutableMapping):
        return type(value)(zip(keys, new))
    made = copy.copy(value)
    for key, item in zip(keys, new):
        made[key] = item
    return made


def _sequence(value: Any, new: list[Any]) -> Any:
    if isinstance(value, list):
        made = copy.copy(value)
        made[:] = new
        return made
    return value._make(new) if hasattr(value, "_make") else type(value)(new)


def _shown(key: Any) -> str:
    # The repr of other objects may contain their address, which differs in every run.
    return repr(key) if isinstance(key, (str, bytes, int, float, type(None))) else type(key).__name__


# Walk through the arguments and the results of calls.


_DEEPEST = 6


def leaves(value: Any, *, dataclasses: bool = False, depth: int = 0) -> list[Any]:
    """Return what nested lists, tuples and mappings hold, in order, and if requested the fields of dataclasses too.

    A collection that is nested deeper than a few levels, as one that contains itself, is returned as it is.
    """
    items = _items(value, dataclasses) if depth < _DEEPEST else None
    if items is None:
        return [value]
    flattened: list[Any] = []
    for item in items:
        flattened += leaves(item, dataclasses=dataclasses, depth=depth + 1)
    return flattened


def _items(value: Any, dataclasses: bool) -> Any:
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, (dict, Mapping)):
        return value.values()
    if dataclasses and hasattr(type(value), "__dataclass_fields__"):
        return [getattr(value, name, None) for name in type(value).__dataclass_fields__]
    return None
