"""The states of Python's and NumPy's global generators, as digests."""

from __future__ import annotations

import sys

from . import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def state_digest(framework_state: Callable[[], bytes]) -> str:
    """Digest the framework's generators together with Python's and NumPy's, where those are loaded."""
    parts = [framework_state()]
    random = sys.modules.get("random")
    if random is not None:
        version, words, gauss = random.getstate()
        # Hashing a tuple of integers is exact and the same in every process; hashing None is not.
        parts.append(repr((version, hash(words), gauss)).encode())
    numpy_random = sys.modules.get("numpy.random")
    if hasattr(numpy_random, "get_state"):
        name, keys, *rest = numpy_random.get_state(legacy=True)  # type: ignore[union-attr]
        parts.append(keys.tobytes() + repr((name, rest)).encode())
    return digest.of_bytes(b"|".join(parts))
