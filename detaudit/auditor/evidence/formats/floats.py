"""The sum of all floating elements in float64, from the bytes of tensors."""

import array
import struct
import sys
from collections.abc import Sequence

from detaudit import wire

_NO_FLOATS = ("b1", "i", "u", "c", "S", "U", "O", "M", "m")
"""NumPy's kinds of elements that are left out of the sum; complex ones too."""


class Total:
    """Add up the pieces of tensors."""

    def __init__(self) -> None:
        self._sums: list[float] = []
        self._understood = True

    def add(self, dtype: str, piece: bytes) -> None:
        """Add the next piece of a tensor; see Part for ``dtype``, which is ``""`` for other data."""
        if not dtype or dtype[1:].startswith(_NO_FLOATS):
            return
        try:
            self._sums.append(wire.add_up(_elements(dtype.removesuffix(" F"), piece)))
        except (KeyError, ValueError, struct.error):
            self._understood = False

    @property
    def value(self) -> float | None:
        """The sum; None if there were no floats, or floats of an unknown type."""
        return wire.add_up(self._sums) if self._sums and self._understood else None


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
