"""What a tested function gave back, as a result of its run; ``detaudit.pytest_plugin`` calls this in the child."""

from __future__ import annotations

import importlib
import math

from .. import probes
from ..training import digest
from ..training.record import ValueReader
from .structure import walk
from .values import ArrayReader, of_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..process.recorder import Recorder

MOST_PARTS = 256
"""Parts that are written one by one; of a value with more of them only one digest is."""

_NAME = "returned"

_recorder: Recorder | None = None


def prepare(recorder: Recorder) -> None:
    """Have ``returned`` write into this recorder's trace."""
    global _recorder
    _recorder = recorder


def returned(value: Any) -> str:
    """Record ``value`` and return why that is not possible, ``""`` if it was: a difference in it must not be missed.

    It is None, a bool, a number, a string, bytes, an array or a tensor, or a list, tuple or dict of them.
    """
    if _recorder is None:
        return "no audit is under way in this process"
    try:
        _write(_recorder, value)
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)
    return ""


def _write(recorder: Recorder, value: Any) -> None:
    parts: list[tuple[str, str]] = []
    sums: list[float] = []

    def visit(part: Any, name: str) -> Any:
        found, total = _read(part)
        parts.append((name, found))
        sums.append(total)
        return part

    walk(value, "", visit)
    whole = digest.of_bytes(repr(parts).encode("utf-8", "surrogatepass"))
    if len(parts) <= MOST_PARTS:
        probes.monitor(value, _NAME)  # its numbers as text, for people
    events: list[dict[str, object]] = [
        {"k": "event", "fw": _NAME, "step": 1, "stage": _NAME, "digest": found + " " + name, "value": None}
        for name, found in (parts if len(parts) <= MOST_PARTS else [("", whole)])
    ]
    final = {"digest": whole, "sum": _sum(sums).hex(), "loss": None, "params": len(parts), "sparse": False}
    recorder.sink.write(*events, {"k": "final", "fw": _NAME, "steps": 1, **final, "devices": []})


def _read(part: Any) -> tuple[str, float]:
    """Return the digest of one part, and the sum of the numbers in it."""
    plain = of_plain(part)
    if plain is not None:
        try:
            return plain, float(part) if isinstance(part, (bool, int, float)) else 0.0
        except OverflowError:
            return plain, math.inf
    if not hasattr(part, "__array__"):
        raise TypeError("numbers, strings, arrays, tensors and nests of them can be compared, not " + _kind(part))
    importlib.import_module("numpy")
    if hasattr(part, "detach"):
        part = ValueReader().array(part)
    return ArrayReader().read([part])[0], ValueReader().total(part) if _is_number(part) else 0.0


def _is_number(part: Any) -> bool:
    return getattr(getattr(part, "dtype", None), "kind", "f") in "fiub"


def _kind(part: Any) -> str:
    return "%s.%s" % (type(part).__module__, type(part).__qualname__)


def _sum(parts: list[float]) -> float:
    try:
        return math.fsum(parts)
    except (OverflowError, ValueError):
        return sum(parts)
