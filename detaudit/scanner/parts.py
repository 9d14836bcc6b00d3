"""The tensors in what an operation returned, with a digest of their bits."""

from __future__ import annotations

import hashlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Parts:
    """``(name, dtype, shape, buffer)`` of each tensor, and of each other value with its text as the buffer."""

    def __init__(self, parts: list[tuple[str, str, tuple[int, ...], Any]]) -> None:
        self._parts = parts

    def digest(self) -> str:
        """Return a digest of all bits, types and shapes."""
        hasher = hashlib.blake2b(digest_size=8)
        for name, dtype, shape, data in self._parts:
            hasher.update(("%s|%s|%s|" % (name, dtype, shape)).encode())
            hasher.update(data)
        return hasher.hexdigest()

    def copies(self) -> list[tuple[str, str, tuple[int, ...], bytes]]:
        """Return the parts with copies of their bytes."""
        return [(name, dtype, shape, bytes(data)) for name, dtype, shape, data in self._parts]


def flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what is in nested lists, tuples and dictionaries, each with its place as a name."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flat(item, "%s.%s" % (name, key) if name else str(key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from flat(item, "%s[%d]" % (name, index))
    else:
        yield name, value
