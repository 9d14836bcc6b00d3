"""Check whether the XLA of a training knows a flag: it aborts the process at an unknown one."""

import functools
import json
import mmap
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from detaudit.launch.target import Target
from detaudit.model import Inapplicable
from detaudit.model.applicability import NotImported, XlaFlagsInFile, XlaTooOld, XlaUnknown

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


def refusal(flag: str, target: Target, base: Mapping[str, str]) -> Inapplicable | None:
    """Return why ``flag`` cannot be added to XLA_FLAGS, None if it can be."""
    given = base.get(VARIABLE, "").strip()
    if given and not given.startswith("--"):
        return XlaFlagsInFile(file=given, xla_flag=flag)
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
    found = {path.resolve() for folder in folders for path in Path(folder).rglob("*.so*") if path.is_file()}
    return tuple(sorted(str(path) for path in found if path.stat().st_size >= _SMALLEST))


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
