"""The states of the global random generators, as digests.

A generator that nobody has used or seeded since its module was imported is left out: unseeded, it is in
another state in every process, and explains nothing.
"""

from __future__ import annotations

import sys

from . import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_untouched: dict[str, bytes] = {}

_MT19937_BYTES = 625 * 4
"""624 words and the position in them: numpy/random/src/mt19937/mt19937.h."""


def _python() -> bytes:
    version, words, gauss = sys.modules["random"].getstate()
    # Hashing a tuple of integers is exact and the same in every process; hashing None is not.
    return repr((version, hash(words), gauss)).encode()


def _numpy() -> bytes:
    random: Any = sys.modules["numpy.random"]
    generator: Any = getattr(random.mtrand._rand, "_bit_generator", None)
    if type(generator).__name__ == "MT19937":
        import ctypes

        # 1 us, where get_state takes 70. The second half of a pair of normals is not in it: it shows at the next draw.
        return ctypes.string_at(generator.ctypes.state_address, _MT19937_BYTES)
    name, keys, *rest = random.get_state(legacy=True)
    return bytes(keys.tobytes()) + repr((name, rest)).encode()


_readers: dict[str, Callable[[], bytes]] = {"random": _python, "numpy.random": _numpy}


def state(name: str) -> bytes:
    """Return the state of a generator as it is."""
    return _readers[name]()


def watch(name: str, read: Callable[[], bytes] | None = None) -> None:
    """Remember the state in which a generator was found; ``read`` for those that are not Python's or NumPy's."""
    if read is not None:
        _readers[name] = read
    _untouched[name] = _readers[name]()


def _touched() -> dict[str, bytes]:
    states = {name: _readers[name]() for name in _untouched}
    return {name: state for name, state in sorted(states.items()) if _untouched[name] != state}


def state_digest() -> str:
    """Digest the watched generators that were touched."""
    return digest.of_bytes(b"|".join([name.encode() + b"=" + state for name, state in _touched().items()]))


def digests() -> dict[str, str]:
    """Digest each of them by itself."""
    return {name: digest.of_bytes(state) for name, state in _touched().items()}
