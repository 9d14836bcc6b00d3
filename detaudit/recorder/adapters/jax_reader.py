"""Reads JAX's arrays: their digests, sums and values, without changing what JAX may do with them."""

from __future__ import annotations

import sys

from ..script import ValueReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Held:
    """A place for an array that is held for the end: its buffer may have to be copied before JAX reuses it."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


class ArrayReader(ValueReader):
    """Reads arrays as NumPy sees them. No view is kept: JAX could not reuse the buffer behind it."""

    def _array(self, value: Any) -> Any:
        value = value.array if isinstance(value, Held) else value
        sharding = getattr(value, "sharding", None)
        if sharding is not None and (len(sharding.device_set) == 1 or value.is_fully_replicated):
            # Another object on the same buffer: the script's own would keep a copy on the host.
            value = value.addressable_data(0)
        return sys.modules["numpy"].asarray(value)

    def size(self, tensor: Any) -> int:
        """Return the bytes of an array's elements."""
        return int(getattr(tensor.array, "nbytes", 0))

    def device(self, tensor: Any) -> str:
        """Return where an array lives, such as ``gpu:0``."""
        devices: Any = getattr(tensor.array, "devices", set)()
        return ",".join(sorted({f"{device.platform}:{device.id}" for device in devices})) or "cpu:0"

    def scalar(self, tensor: Any) -> float | None:
        """Return the value of a real array of one element."""
        array = self._array(tensor)
        return float(array.reshape(-1)[0]) if array.size == 1 and array.dtype.kind in "fiuV" else None
