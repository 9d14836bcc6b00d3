"""The database of operations that torch's own tests use: torch.testing._internal."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import re
import sys
import types
import unittest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

CONSIDERED = 100
"""Samples of an operation that are looked at."""

FEW, SEVERAL = 3, 8
"""Samples that are repeated: of an operation, and of one that takes an index."""

TAKES_INDEX = re.compile("index|put|scatter|__getitem__|take|gather|embedding|segment")


def load() -> dict[str, Any]:
    """Return the entries of the database by name, such as ``index_put`` and ``div.floor_rounding``."""
    if "expecttest" not in sys.modules and importlib.util.find_spec("expecttest") is None:
        # torch's tests import it for a base class, which the database does not use; users do not have it.
        standin = types.ModuleType("expecttest")
        standin.TestCase = unittest.TestCase  # type: ignore[attr-defined]
        sys.modules["expecttest"] = standin
    entries = importlib.import_module("torch.testing._internal.common_methods_invocations").op_db
    return {"%s.%s" % (e.name, e.variant_test_name) if e.variant_test_name else e.name: e for e in entries}


def in_place(name: str, entry: Any) -> bool:
    """Return whether the variant of an operation that works in place is repeated too: of those that take an index."""
    return bool(TAKES_INDEX.search(name)) and entry.inplace_variant is not None


def samples(
    torch: Any, name: str, entry: Any, dtype: Any, device: str, only: list[int] | None
) -> Iterator[tuple[int, Any]]:
    """Yield samples with their numbers: ``only`` those, or few with different options, the largest with each."""
    most = CONSIDERED if only is None else max(only) + 1
    numbered = enumerate(itertools.islice(entry.sample_inputs(device, dtype, requires_grad=False), most))
    if only is not None:
        yield from ((number, sample) for number, sample in numbered if number in only)
        return
    largest: dict[str, tuple[int, int, Any]] = {}
    for number, sample in numbered:
        options, size = _counts_options(torch, sample)
        if options not in largest or size > largest[options][0]:
            largest[options] = (size, number, sample)
    chosen = sorted(largest.values(), key=lambda one: one[1])
    most = SEVERAL if TAKES_INDEX.search(name) else FEW
    if len(chosen) > most:
        chosen = [chosen[index * (len(chosen) - 1) // (most - 1)] for index in range(most)]
    for _, number, sample in chosen:
        yield number, sample


def _counts_options(torch: Any, sample: Any) -> tuple[str, int]:
    """Return what distinguishes a sample apart from the shapes and contents of its tensors, and its elements."""
    size = 0

    def describe(value: Any) -> str:
        nonlocal size
        if isinstance(value, torch.Tensor):
            size += value.numel()
            return str(value.dtype)
        if isinstance(value, (list, tuple)):
            return "[%s]" % ", ".join(map(describe, value))
        if isinstance(value, dict):
            return "{%s}" % ", ".join("%s: %s" % (key, describe(item)) for key, item in value.items())
        return repr(value) if isinstance(value, (bool, str, type(None))) else type(value).__name__

    return describe([sample.input, sample.args, sample.kwargs]), size
