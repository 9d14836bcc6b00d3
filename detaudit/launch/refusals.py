"""Flags that this system or its XLA does not support, and how addresses are fixed."""

import contextlib
import ctypes
import functools
import json
import mmap
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from detaudit.config.flags import NO_ASLR, Flag
from detaudit.launch.target import Target
from detaudit.model import FlagOutcome, FlagState, Inapplicable
from detaudit.model.sources import AddressesRandom, NotImported, XlaFlagsInFile, XlaTooOld, XlaUnknown

# Turn address space randomization (ASLR) off for new processes, if the system permits it.


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


def aslr_refusal() -> str:
    """Return why addresses cannot be fixed on this system, ``""`` if they can."""
    try:
        with no_aslr():
            return ""
    except OSError as error:
        return str(error)


# Check whether the XLA of a training knows a flag: it aborts the process at an unknown one.


VARIABLE = "XLA_FLAGS"

_FIND = """
import importlib.util, json
specs = filter(None, map(importlib.util.find_spec, ("jaxlib", "jax_plugins", "tensorflow")))
print(json.dumps([place for spec in specs for place in spec.submodule_search_locations or ()]))
"""
"""Finds the packages without importing them."""

_PARSER = b"\0xla_dump_to\0"
"""A flag that every XLA has. A library with its name as a C string parses flags; others only mention some."""

_SMALLEST = 2**20


def xla_refusal(flag: str, target: Target, base: Mapping[str, str]) -> Inapplicable | None:
    """Return why ``flag`` cannot be added to XLA_FLAGS, None if it can be."""
    markup = base.get(VARIABLE, "").strip()
    if markup and not markup.startswith("--"):
        return XlaFlagsInFile(file=markup, xla_flag=flag)
    python = _python(target)
    if not python:
        return XlaUnknown(xla_flag=flag)
    return _known(flag.lstrip("-").partition("=")[0], libraries(python))


def _known(name: str, paths: Iterable[str]) -> Inapplicable | None:
    parsers = [path for path in paths if contains(path, _PARSER)]
    if not parsers:
        return NotImported()
    without = next((path for path in parsers if not contains(path, b"\0%b\0" % name.encode())), "")
    return XlaTooOld(library=without) if without else None


@functools.cache
def libraries(python: str) -> tuple[str, ...]:
    """Return the libraries of JAX and TensorFlow that this Python would load and that may contain an XLA."""
    try:
        done = subprocess.run(
            [python, "-c", _FIND], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=True
        )
        folders = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return ()
    files = {path.resolve() for folder in folders for path in Path(folder).rglob("*.so*") if path.is_file()}
    return tuple(sorted(str(path) for path in files if path.stat().st_size >= _SMALLEST))


@functools.cache
def contains(path: str, words: bytes) -> bool:
    """Return whether a file contains these bytes; False if it cannot be read."""
    try:
        with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(words) >= 0
    except (OSError, ValueError):
        return False


def _python(target: Target) -> str:
    """Return the Python that a command starts, by its name or by the shebang line of a script."""
    if target.script or target.module:
        return target.python
    program = Path(target.program)
    if program.name.startswith("python"):
        return str(program)
    try:
        with program.open("rb") as file:
            first = file.readline(500)
    except OSError:
        return ""
    words = os.fsdecode(first).removeprefix("#!").split()
    return words[0] if first.startswith(b"#!") and words and Path(words[0]).name.startswith("python") else ""


# Find the flags of a recipe that this system, or the environment of this training, does not support.


def refused(flags: Iterable[Flag], target: Target, base: Mapping[str, str] = os.environ) -> dict[str, FlagState]:
    """Return the state of each flag that must not be applied, with the reason."""
    states = {}
    for flag in flags:
        reason: Inapplicable | None = None
        if flag.launcher == NO_ASLR and (refusal := aslr_refusal()):
            reason = AddressesRandom(detail=refusal)
        elif VARIABLE in flag.env:
            reason = xla_refusal(flag.env[VARIABLE], target, base)
        if reason is not None:
            absent = isinstance(reason, NotImported)
            state = FlagOutcome.NOT_IMPORTED if absent else FlagOutcome.UNAVAILABLE
            states[flag.id] = FlagState(id=flag.id, state=state, reason=None if absent else reason)
    return states
