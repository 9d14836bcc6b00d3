"""The sum of all floating elements in float64, and the least and largest element, from the bytes of tensors."""

import array
import math
import struct
import sys
from collections.abc import Sequence

from detaudit import wire
from detaudit.runs.formats import NUMBER, TEXT

_NO_FLOATS = ("b1", "i", "u", "c", "S", "U", "O", "M", "m")
"""NumPy's kinds of elements that are left out of the sum; complex ones too."""


class Total:
    """Add up the pieces of tensors."""

    def __init__(self) -> None:
        self._sums: list[float] = []
        self._understood = True

    def add(self, dtype: str, piece: bytes) -> None:
        """Add the next piece of a tensor; see Part for ``dtype``."""
        if dtype in ("", NUMBER, TEXT) or dtype[1:].startswith(_NO_FLOATS):
            return
        try:
            self._sums.append(wire.add_up(_elements(dtype.partition(" ")[0], piece)))
        except (KeyError, ValueError, struct.error):
            self._understood = False

    @property
    def value(self) -> float | None:
        """The sum; None if there were no floats, or floats of an unknown type."""
        return wire.add_up(self._sums) if self._sums and self._understood else None


_INTEGERS = {"i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q", "b1": "B"}

MOST_EXTREMES = 2**24
"""Elements of which the least and largest is looked for."""


class Extremes:
    """The least and the largest element of one array, but for NaN."""

    def __init__(self) -> None:
        self._least, self._most, self._count = math.inf, -math.inf, 0
        self._understood = True

    def add(self, dtype: str, piece: bytes) -> None:
        """Add the next piece, which has whole elements; see Part for ``dtype``."""
        if not self._understood or self._count > MOST_EXTREMES or not piece:
            return
        try:
            kind = dtype.partition(" ")[0]
            elements = _integers(kind, piece) if kind[1:] in _INTEGERS else _elements(kind, piece)
        except (KeyError, ValueError, struct.error):
            self._understood = False
            return
        self._count += len(elements)
        if any(one != one for one in elements):
            elements = [one for one in elements if one == one]
        self._least = min(self._least, min(elements, default=math.inf))
        self._most = max(self._most, max(elements, default=-math.inf))

    def of(self, shape: Sequence[int]) -> tuple[float, float] | None:
        """Return both, None if they are not known for all elements of this shape."""
        if not self._understood or not self._count or self._count != math.prod(shape):
            return None
        return self._least, self._most


def _integers(dtype: str, piece: bytes) -> Sequence[int]:
    integers = array.array(_INTEGERS[dtype[1:]], piece)
    if (dtype[0] == ">") != (sys.byteorder == "big") and integers.itemsize > 1:
        integers.byteswap()
    return integers


def _elements(dtype: str, piece: bytes) -> Sequence[float]:
    order, kind = dtype[:1], dtype[1:]
    if kind == "f2":
        return struct.unpack(f"{order}{len(piece) // 2}e", piece)
    if kind == "bf16":  # the upper half of a float32
        wide = bytearray(2 * len(piece))
        first = 2 if order == "<" else 0
        wide[first::4], wide[first + 1 :: 4] = piece[::2], piece[1::2]
        kind, piece = "f4", bytes(wide)
    floats = array.array({"f4": "f", "f8": "d"}[kind], piece)
    if (order == ">") != (sys.byteorder == "big"):
        floats.byteswap()
    return floats
