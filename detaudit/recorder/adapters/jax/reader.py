"""Read JAX's arrays: their digests, sums and values, without restricting what JAX can do with their buffers."""

from __future__ import annotations

import importlib

from ...training import digest
from ...training.reader import FrameworkReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Held:
    """Holds an array until the end. It is replaced by a copy before JAX reuses its buffer."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


class JaxReader(FrameworkReader):
    """Reads arrays through NumPy. It keeps no view, which would stop JAX from reusing the buffer."""

    def __init__(self) -> None:
        self._np: Any = importlib.import_module("numpy")  # installed, since JAX needs it
        self._digest = digest.NumpyDigest(self._np)
        self._kinds: dict[Any, str] = {}

    def array(self, value: Any) -> Any:
        """Return a view of an array, which may be Held, or a copy if it is on a device other than the CPU."""
        value = value.array if isinstance(value, Held) else value
        devices = value.devices() if hasattr(value, "devices") else ()
        if devices and next(iter(devices)).platform != "cpu" and (len(devices) == 1 or value.is_fully_replicated):
            # Use a new object on the same buffer, since the script's object would keep the copy.
            value = value.addressable_data(0)
        return self._np.asarray(value)

    def part(self, name: str, tensor: Any) -> digest.Part:
        """Return (name, dtype, shape, digest) of an array."""
        array = self.array(tensor)
        kind = self._kinds.get(array.dtype)
        if kind is None:
            kind = self._kinds[array.dtype] = str(array.dtype)
        return name, kind, array.shape, self._digest.words(array)

    def total(self, tensor: Any) -> float:
        """Return the sum of the elements in float64."""
        return self._digest.total(self.array(tensor))

    def size(self, tensor: Any) -> int:
        """Return the number of bytes of an array."""
        return int(getattr(tensor.array, "nbytes", 0))

    def device(self, tensor: Any) -> str:
        """Return the devices of an array, such as ``gpu:0``."""
        devices: Any = getattr(tensor.array, "devices", set)()
        return ",".join(sorted({f"{device.platform}:{device.id}" for device in devices})) or "cpu:0"

    def scalar(self, tensor: Any) -> float | None:
        """Return the value of a real array with one element, None for others."""
        array = self.array(tensor)
        return float(array.reshape(-1)[0]) if array.size == 1 and array.dtype.kind in "fiuV" else None
