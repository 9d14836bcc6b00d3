"""Digests what lies on the host: plain Python values, NumPy's arrays, and what NumPy can read."""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping

from ..training import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def of_plain(value: Any) -> str | None:
    """Return the digest of None, a bool, a number, a string, bytes or an empty structure, None for anything else."""
    if value is None or isinstance(value, (bool, int)):
        data = repr(value).encode()
    elif isinstance(value, float):
        data = struct.pack("<d", value)
    elif isinstance(value, complex):
        data = struct.pack("<dd", value.real, value.imag)
    elif isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
    elif isinstance(value, (bytes, bytearray)):
        data = bytes(value)
    elif isinstance(value, (list, tuple, Mapping)) and not len(value):
        data = b""
    else:
        return None
    return digest.of_bytes(type(value).__name__.encode() + b"|" + data)


def shown(value: Any) -> str:
    """Return a short text of a plain value."""
    if isinstance(value, float):
        return float.__repr__(value)  # NumPy's say their type too
    return repr(value[:100] if isinstance(value, (str, bytes, bytearray)) else value)


class ArrayReader:
    """Digests arrays with NumPy. Not for several threads at once."""

    def __init__(self) -> None:
        self._digest: digest.NumpyDigest | None = None

    def read(self, parts: Sequence[Any]) -> tuple[str, str | None]:
        """Return the digest of arrays that belong together, and the value as text if it is one number or string.

        Raises TypeError if one of them is nothing that NumPy can read.
        """
        np: Any = sys.modules["numpy"]
        arrays = [np.asarray(part) for part in parts]
        self._digest = self._digest or digest.NumpyDigest(np)
        digests = [("", str(array.dtype), tuple(array.shape), self._words(self._digest, array)) for array in arrays]
        single = arrays[0].reshape(-1)[0] if len(arrays) == 1 and arrays[0].size == 1 else None
        return digest.of_parts(digests), None if single is None else _text(single)

    @staticmethod
    def _words(digester: digest.NumpyDigest, array: Any) -> int:
        if array.dtype.kind != "O":
            return digester.words(array)
        digests = [of_plain(item) for item in array.reshape(-1).tolist()]  # TensorFlow's strings come as objects
        if None in digests:
            raise TypeError("an array of objects that are no plain values")
        return digest.small("".join(filter(None, digests)).encode())


def _text(item: Any) -> str:
    if isinstance(item, (str, bytes)):
        return shown(item)
    try:
        return repr(item.item()) if item.dtype.kind in "biufc" else repr(float(item))
    except (AttributeError, TypeError, ValueError):  # a date, a record
        return str(item)
