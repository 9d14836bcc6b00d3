"""Where the elements of a tensor lie in its storage, and the storages that other pickles than torch.save's hold.

``pickle.dump(model)`` and ``joblib.dump(model)`` write each storage as bytes in torch's format of before 1.6: five
pickles, of which the fourth is the storage's persistent ID, then the number of its elements, then their bytes
(``torch.serialization._legacy_save``). The ID holds a memory address, so these bytes differ in every run.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

from detaudit.runs.formats import check_unpacked, extents, torch
from detaudit.runs.formats.standins import Array, Persistent, digest_of

_PICKLES = 5
_COUNT = 8
"""Bytes of the number of elements."""


@dataclass(eq=False)
class Storage:
    """The storage of a tensor; ``data`` are its bytes, or none once all of them were digested."""

    kind: str
    elements: int
    size: int
    digest: str
    data: bytes = field(repr=False)
    seen: int = 0


def storage_in(pickled: bytes, read: Callable[[IO[bytes]], Any]) -> Storage | None:
    """Return the one storage that torch wrote to these bytes, None if they are something else.

    ``read`` returns the stand-in for a pickled object.
    """
    if not pickled.startswith(torch.LEGACY):
        return None
    file = io.BytesIO(pickled)
    *_, root, keys = [read(file) for _ in range(_PICKLES)]
    if not isinstance(root, Persistent) or not isinstance(keys, list) or len(keys) != 1:
        return None
    _, kind, _, _, elements, *_ = root.key
    if not isinstance(elements, int):
        return None
    data = pickled[file.tell() + _COUNT :]
    return Storage(kind.name, elements, len(data), digest_of([data]), data)


def shown(storage: Storage, offset: int, shape: Any, strides: Any) -> Array:
    """Return the elements that a tensor shows of its storage."""
    shape, strides, (offset,) = extents(shape), extents(strides), extents((offset,))
    kind = torch.dtype_of(storage.kind)
    if kind is None:  # elements of an unknown size
        return Array(storage.kind, shape, storage.digest)
    start, size = span(offset, shape, strides, storage.size // max(storage.elements, 1), storage.size)
    digest, dtype = storage.digest, f"<{kind}{layout_of(shape, strides)}"
    if size == storage.size:
        storage.data = b""
    elif storage.data:
        storage.seen += size
        check_unpacked(storage.seen, storage.size)
        digest = digest_of([storage.data[start : start + size]])
    else:
        raise ValueError("a part of a storage comes after the whole")
    return Array(dtype, shape, digest)


def span(offset: int, shape: Any, strides: Any, size: int, storage_size: int) -> tuple[int, int]:
    """Return where the elements of a tensor begin and how many bytes they span.

    ``size`` is that of an element, ``storage_size`` that of the storage, in bytes. Raises ValueError if it is too
    small.
    """
    if 0 in shape:
        return 0, 0
    last = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    start, length = offset * size, (last + 1) * size
    if start < 0 or length < 0 or start + length > storage_size:
        raise ValueError("a tensor ends after its storage")
    return start, length


def layout_of(shape: Any, strides: Any) -> str:
    """Return how the elements of a tensor are laid out, as text; nothing if each follows the one before."""
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != expected:
            return f" {tuple(strides)}"
        expected *= extent
    return ""
