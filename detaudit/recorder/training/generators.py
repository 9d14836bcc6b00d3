"""Digest the states of the global random generators.

A generator that was neither used nor seeded since the import of its module is left out: its state comes from entropy,
differs in every process, and explains nothing. The same holds for Python's own in a forked child, which Python seeds.
"""

from __future__ import annotations

import os
import sys

from . import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_untouched: dict[str, bytes] = {}

_MT19937_BYTES = 625 * 4
"""624 words and the position in them; see numpy/random/src/mt19937/mt19937.h."""

_seen: tuple[Any, bytes] = (None, b"")
"""The memory of Python's generator at the last look, and its state."""


def _python() -> bytes:
    global _seen
    random: Any = sys.modules["random"]
    memory, (known, state) = _memory(random), _seen
    if memory is None or memory != known:
        version, words, gauss = random.getstate()
        # The hash of a tuple of integers is the same in every process; the hash of None is not.
        state = repr((version, hash(words), gauss)).encode()
        _seen = memory, state
    return state


def _memory(random: Any) -> Any:
    """Return what has changed whenever the state has, None if that is unknown: this takes 1 us, getstate 20.

    In CPython, the position and the words are in the object itself; the cached half of a pair is an attribute.
    """
    ctypes: Any = sys.modules.get("ctypes")  # its import would take milliseconds
    generator = random._inst
    if ctypes is None or sys.implementation.name != "cpython" or type(generator) is not random.Random:
        return None
    size = random.Random.__mro__[1].__basicsize__ - object.__basicsize__
    if size < _MT19937_BYTES:
        return None
    return ctypes.string_at(id(generator) + object.__basicsize__, size), generator.gauss_next


_of_numpy: tuple[Any, int] = (None, 0)
"""The generator of NumPy, and where its state is."""


def _numpy() -> bytes:
    global _of_numpy
    random: Any = sys.modules["numpy.random"]
    generator: Any = getattr(random.mtrand._rand, "_bit_generator", None)
    if type(generator).__name__ == "MT19937":
        import ctypes

        known, address = _of_numpy
        if generator is not known:
            address = generator.ctypes.state_address
            _of_numpy = generator, address
        # This takes 1 us, get_state 70. It leaves out the cached half of a pair of normals, which the next draw shows.
        return ctypes.string_at(address, _MT19937_BYTES)
    name, keys, *rest = random.get_state(legacy=True)
    return bytes(keys.tobytes()) + repr((name, rest)).encode()


_readers: dict[str, Callable[[], bytes]] = {"random": _python, "numpy.random": _numpy}


def state(name: str) -> bytes:
    """Return the present state of a generator."""
    return _readers[name]()


def watch(name: str, read: Callable[[], bytes] | None = None) -> None:
    """Remember the present state of a generator as untouched. Pass ``read`` unless it is Python's or NumPy's."""
    if read is not None:
        _readers[name] = read
    _untouched[name] = _readers[name]()


def watch_in_children(name: str) -> None:
    """Do so again in each forked child, after what the imported modules do there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: watch(name))


def leave_out(name: str, before: bytes) -> None:
    """Take no account of a draw if the generator was untouched before, such as one by a library that is imported."""
    if _untouched.get(name) == before:
        watch(name)


def _touched() -> dict[str, bytes]:
    touched = {}
    for name in sorted(_untouched):
        state = _readers[name]()
        if state != _untouched[name]:
            touched[name] = state
    return touched


_digested: tuple[dict[str, bytes], str] = ({}, digest.of_bytes(b""))
"""The states that were digested last, and their digest."""


def state_digest() -> str:
    """Return one digest of all watched generators that were seeded or used."""
    global _digested
    touched, (known, combined) = _touched(), _digested
    if touched != known:
        combined = digest.of_bytes(b"|".join([name.encode() + b"=" + state for name, state in touched.items()]))
        _digested = touched, combined
    return combined


def digests() -> dict[str, str]:
    """Return a digest of each of these generators."""
    return {name: digest.of_bytes(state) for name, state in _touched().items()}
