"""Fill memory with a pattern whenever it is allocated, by glibc's own means."""

from __future__ import annotations

import ctypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_M_PERTURB = -6
"""From malloc.h. Allocated memory is filled with the complement of the lowest byte of the value, and 0 turns it off.

The caches of threads are not filled: glibc.malloc.tcache_count=0 in GLIBC_TUNABLES turns them off.
"""


class Filling:
    """Fills memory with one of ``bytes`` after the other, or leaves it as it is if there are none."""

    def __init__(self, fills: Sequence[int]) -> None:
        self.bytes = tuple(fills) or (-1,)
        self._number = 0
        self._option: Callable[[int, int], int] | None = ctypes.CDLL(None).mallopt if fills else None

    def next(self, fill_device: Callable[[int], None]) -> str:
        """Use the next byte for what is allocated from now on, and return it in hexadecimal, ``""`` for none."""
        byte = self.bytes[self._number % len(self.bytes)]
        self._number += 1
        if self._option is None:
            return ""
        self._option(_M_PERTURB, byte ^ 0xFF)
        fill_device(byte)
        return "%02x" % byte

    def stop(self) -> None:
        """Leave memory as it is."""
        if self._option is not None:
            self._option(_M_PERTURB, 0)
