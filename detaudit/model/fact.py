"""What every fact is, and numbers and times as reports write them."""

import math
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any, TypeAlias, Union

import msgspec

# JSON of what was found, also of names that are not UTF-8.


def encode(value: object) -> bytes:
    """Return a value as JSON. Lone surrogates, which stand for bytes that are not UTF-8, are escaped as text."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_escaped(msgspec.to_builtins(value)))


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_escaped(key): _escaped(one) for key, one in value.items()}
    return [_escaped(one) for one in value] if isinstance(value, list | tuple) else value


# Facts: what detaudit found, as kinds with fields.


def kind_of(name: str) -> str:
    """Return the ``kind`` of a class in JSON: ``TimedOut`` is ``timed-out``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


class Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=kind_of):
    """A fact, and its sentence, which nothing depends on; in JSON, ``kind`` names its class."""

    def text(self) -> str:
        """Return what it says, as one plain sentence."""
        raise NotImplementedError


def union(of: type[Fact]) -> Any:
    """Return the union of all kinds of a sort of facts, by which msgspec reads one of them from JSON."""
    return Union[tuple(kinds(of))]  # noqa: UP007 - of types that are only known when it runs


def kinds(of: type[Fact]) -> Iterator[type[Fact]]:
    """Yield all kinds of a sort of facts, in their order in the code."""
    for one in of.__subclasses__():
        below = [*kinds(one)]
        yield from below or [one]


# Numbers for JSON, and for people.


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


# Points in time, as reports write them.


def now() -> str:
    """Return the time, to the second and in UTC, as ISO 8601 writes it."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
