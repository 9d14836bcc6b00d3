"""Numbers for JSON, and for people."""

import math
from typing import TypeAlias

Number: TypeAlias = float | str | None
"""A finite float, or ``"nan"``, ``"inf"``, ``"-inf"``, which JSON cannot write as numbers."""


def as_number(value: float | None) -> Number:
    """Return ``value`` in a form that JSON can hold without loss."""
    if value is None or math.isfinite(value):
        return value
    return repr(value)


def digits(value: Number) -> str:
    """Return a number with all its digits (17 significant), ``-`` if there is none."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else format(value, ".17g")


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 run``, ``2 runs``, ``22,300 elements``; ``plural`` if it is irregular."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
