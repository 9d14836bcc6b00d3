"""Flags that no setting of a framework offers: small named changes to a module."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def seed_numpy_entropy(seed: int) -> None:
    """Give NumPy's unseeded generators repeatable entropy.

    ``default_rng()``, ``SeedSequence()``, ``RandomState()`` and ``seed(None)`` all draw from the module
    global ``randbits`` of numpy.random.bit_generator (numpy/random/bit_generator.pyx).
    A forked child would replay its parent's stream, so it starts one that depends on its own identity.

    Raises AttributeError where this NumPy draws its entropy elsewhere.
    """
    import random

    from . import sources

    module = sys.modules["numpy.random.bit_generator"]
    module.randbits  # noqa: B018 - raises where the name does not exist
    module.randbits = random.Random(seed).getrandbits  # type: ignore[attr-defined]

    sources.repeatable.update(("numpy.random.default_rng", "numpy.random.seed"))

    def after_fork() -> None:
        process = sys.modules.get("multiprocessing.process")
        counter = getattr(process, "_process_counter", None)
        forks = repr(counter) if counter is not None else ""
        module.randbits = random.Random(f"{seed} {forks}").getrandbits  # type: ignore[attr-defined]

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=after_fork)


PATCHES: dict[str, Callable[[int], None]] = {"seed-numpy-entropy": seed_numpy_entropy}
