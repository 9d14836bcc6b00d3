"""What stands in for the objects of a pickle, which is never loaded."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Global:
    """A function or a class, as ``module name``."""

    name: str


@dataclass(frozen=True)
class Blob:
    """Bytes, of which only the digest is kept, and ``data`` if they are few."""

    size: int
    digest: str
    data: bytes = b""


@dataclass(frozen=True)
class Array:
    """An array, of whose bytes only the digest is kept, and ``data`` if they are few; ``dtype`` as in Part."""

    dtype: str
    shape: tuple[int, ...]
    digest: str
    data: bytes = b""


@dataclass(eq=False)
class Call:
    """What a function or a class would return, and what is put into it afterwards."""

    function: Any
    arguments: Any
    state: Any = None
    items: list[Any] = field(default_factory=list)
    pairs: list[Any] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Persistent:
    """An object outside of the pickle, such as a storage of torch."""

    key: Any


@dataclass(eq=False)
class Mapping:
    """A dict. Its keys need not be hashable here."""

    pairs: list[Any]


@dataclass(eq=False)
class Bag:
    """A set: its elements have no order."""

    items: list[Any]

    def extend(self, items: list[Any]) -> None:
        """Add elements."""
        self.items.extend(items)


def digest_of(pieces: Iterable[bytes]) -> str:
    """Return the digest of bytes that come in pieces."""
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()
