"""Record the return value of a test as the result of a run; called by ``detaudit.pytest_plugin`` in the child."""

from __future__ import annotations

import importlib
import math

from ... import wire
from .. import probes
from ..training import clocks, digest
from ..training.record import ValueReader
from ..training.walk import walk
from .log import NumpyReader, digest_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..process.log import Row
    from ..process.recorder import Recorder

MOST_PARTS = 256
"""Parts of a value that are written one by one. A value with more parts is written as one digest."""

_DEEPEST = 32
_NAME = "returned"

_recorder: Recorder | None = None


def prepare(recorder: Recorder) -> None:
    """Make ``returned`` write to the event log of this recorder."""
    global _recorder
    _recorder = recorder


def returned(value: Any) -> str:
    """Record ``value``, and return ``""``, or the reason if that failed: its differences must not go unnoticed.

    Entries of dicts that the name and the value show to be measured times are left out, such as ``elapsed``.

    ``value`` is None, a bool, a number, a string, bytes, an array or a tensor, or a list, tuple or dict of them.
    """
    if _recorder is None:
        return "no audit is running in this process"
    try:
        _write(_recorder, value)
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)
    return ""


def _write(recorder: Recorder, value: Any) -> None:
    kept = _without_clocks(value)
    if kept is _NOTHING:
        return
    value = kept
    parts: list[tuple[str, str]] = []
    sums: list[float] = []

    def visit(part: Any, name: str) -> Any:
        part_digest, total = _read(part)
        parts.append((name, part_digest))
        sums.append(total)
        return part

    walk(value, "", visit)
    combined = digest.of_bytes(repr(parts).encode("utf-8", "surrogatepass"))
    if len(parts) <= MOST_PARTS:
        probes.monitor(value, _NAME)  # its numbers as text, to be shown in a report
    rows: list[Row] = [
        (1, 0, _NAME, part_digest + " " + name, None)
        for name, part_digest in (parts if len(parts) <= MOST_PARTS else [("", combined)])
    ]
    total = wire.add_up(sums).hex()
    final = {"digest": combined, "sum": total, "loss": None, "params": len(parts), "sparse": False}
    recorder.sink.write_rows(_NAME, rows)
    recorder.sink.write({"k": "final", "fw": _NAME, "steps": 1, **final, "devices": []})


_NOTHING = object()


def _without_clocks(value: Any, depth: int = 0) -> Any:
    """Return a value without the entries of dicts that are times which the test measured; _NOTHING if none is left."""
    if depth > _DEEPEST:
        return value
    if isinstance(value, dict) and value:
        kept = {
            key: trimmed
            for key, one in value.items()
            if not (isinstance(key, str) and clocks.is_measured(key, one))
            and (trimmed := _without_clocks(one, depth + 1)) is not _NOTHING
        }
        if len(kept) == len(value) and all([kept[key] is value[key] for key in kept]):
            return value
        return kept or _NOTHING
    if type(value) in (list, tuple) and value:
        entries = [_without_clocks(one, depth + 1) for one in value]
        if all([a is b for a, b in zip(entries, value)]):
            return value
        left = [one for one in entries if one is not _NOTHING]
        return type(value)(left) if left else _NOTHING
    return value


def _read(part: Any) -> tuple[str, float]:
    """Return the digest of one part, and the sum of its numbers."""
    plain = digest_plain(part)
    if plain is not None:
        try:
            return plain, float(part) if isinstance(part, (bool, int, float)) else 0.0
        except OverflowError:
            return plain, math.inf
    if not hasattr(part, "__array__"):
        raise TypeError("a test can return numbers, strings, arrays, tensors and nests of them, not " + _kind(part))
    importlib.import_module("numpy")
    if hasattr(part, "detach"):
        part = ValueReader().array(part)
    return NumpyReader().read([part])[0], ValueReader().total(part) if _is_number(part) else 0.0


def _is_number(part: Any) -> bool:
    return getattr(getattr(part, "dtype", None), "kind", "f") in "fiub"


def _kind(part: Any) -> str:
    return "%s.%s" % (type(part).__module__, type(part).__qualname__)
