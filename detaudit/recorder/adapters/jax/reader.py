"""Reads JAX's arrays: their digests, sums and values, without changing what JAX may do with them."""

from __future__ import annotations

import importlib

from ...training import digest
from ...training.reader import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Held:
    """A place for an array that is held for the end: its buffer may have to be copied before JAX reuses it."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


class ArrayReader(Reader):
    """Reads arrays as NumPy sees them. No view is kept: JAX could not reuse the buffer behind it."""

    def __init__(self) -> None:
        self._np: Any = importlib.import_module("numpy")  # JAX needs it: it is there
        self._digest = digest.NumpyDigest(self._np)
        self._kinds: dict[Any, str] = {}

    def array(self, value: Any) -> Any:
        """Return a view of an array, also of one that is held, or a copy where it lives on another device."""
        value = value.array if isinstance(value, Held) else value
        devices = value.devices() if hasattr(value, "devices") else ()
        if devices and next(iter(devices)).platform != "cpu" and (len(devices) == 1 or value.is_fully_replicated):
            # Another object on the same buffer: the script's own would keep the copy.
            value = value.addressable_data(0)
        return self._np.asarray(value)

    def part(self, name: str, tensor: Any) -> digest.Part:
        """Return (name, dtype, shape, word digest)."""
        array = self.array(tensor)
        kind = self._kinds.get(array.dtype)
        if kind is None:
            kind = self._kinds[array.dtype] = str(array.dtype)
        return name, kind, array.shape, self._digest.words(array)

    def total(self, tensor: Any) -> float:
        """Return the sum of the elements in float64."""
        return self._digest.total(self.array(tensor))

    def size(self, tensor: Any) -> int:
        """Return the bytes of an array's elements."""
        return int(getattr(tensor.array, "nbytes", 0))

    def device(self, tensor: Any) -> str:
        """Return where an array lives, such as ``gpu:0``."""
        devices: Any = getattr(tensor.array, "devices", set)()
        return ",".join(sorted({f"{device.platform}:{device.id}" for device in devices})) or "cpu:0"

    def scalar(self, tensor: Any) -> float | None:
        """Return the value of a real array of one element."""
        array = self.array(tensor)
        return float(array.reshape(-1)[0]) if array.size == 1 and array.dtype.kind in "fiuV" else None
