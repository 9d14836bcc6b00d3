"""Find the weights that a last update by hand made: no backward pass has them, only the script's own variables."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

_MOST = 100_000
"""Values that are looked at."""


def successors(torch: Any, leaves: Sequence[Any]) -> list[Any]:
    """Return the tensors in global variables of the script that have the shape and type of a leaf and are none.

    What is in no variable at the end can have no effect any more, but for what was printed or saved.
    """
    kinds = {(tuple(leaf.shape), leaf.dtype) for leaf in leaves}
    known = {id(leaf) for leaf in leaves}
    main = sys.modules.get("__main__")
    found = []
    for value in _values(vars(main) if main is not None else {}, torch.nn.Module):
        if isinstance(value, torch.Tensor) and id(value) not in known and (tuple(value.shape), value.dtype) in kinds:
            known.add(id(value))
            found.append(value)
    return found


def _values(variables: dict[str, Any], recorded: type) -> Iterator[Any]:
    """Yield the values in nested collections, and in objects of classes of the script, in their order.

    What is in ``recorded`` objects, the modules, is recorded already, but for buffers that no checkpoint has.
    """
    waiting = [value for name, value in reversed(list(variables.items())) if not name.startswith("__")]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            waiting += reversed(list(value.values()))
        elif isinstance(value, (list, tuple)):
            waiting += reversed(value)
        elif isinstance(value, recorded):
            continue
        elif type(value).__module__ == "__main__" and hasattr(value, "__dict__"):
            waiting += reversed(list(vars(value).values()))
        else:
            yield value
