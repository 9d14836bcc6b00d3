"""Turn address space randomization (ASLR) off for new processes, if the system permits it."""

import contextlib
import ctypes
import sys
from collections.abc import Iterator

ADDR_NO_RANDOMIZE = 0x0040000
"""linux/personality.h"""

_QUERY = 0xFFFFFFFF


def _personality(value: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.personality(ctypes.c_ulong(value)))


@contextlib.contextmanager
def no_aslr() -> Iterator[None]:
    """Start processes at fixed addresses inside this block.

    The personality belongs to the calling thread and takes effect at exec, so this process itself keeps its
    addresses. Raises OSError if the system forbids it.
    """
    before = _personality(_QUERY) if sys.platform == "linux" else -1
    if before == -1 or _personality(before | ADDR_NO_RANDOMIZE) == -1:
        raise OSError("the system does not permit personality(ADDR_NO_RANDOMIZE)")
    try:
        yield
    finally:
        _personality(before)


def refusal() -> str:
    """Return why addresses cannot be fixed on this system, ``""`` if they can."""
    try:
        with no_aslr():
            return ""
    except OSError as error:
        return str(error)
