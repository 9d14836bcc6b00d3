"""What every fact is, and numbers and times as reports write them."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from typing import Any, TypeAlias, TypeVar, Union

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


_One = TypeVar("_One")

_MINUTE, _HOUR, _DAY = 60, 3600, 24 * 3600


def both(words: Iterable[str]) -> str:
    """Return words as a list: ``a``, ``a and b``, ``a, b and c``."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def either(words: Iterable[str]) -> str:
    """Return words as alternatives: ``a``, ``a, or b``, ``a, b, or c``."""
    *others, last = words
    return f"{', '.join(others)}, or {last}" if others else last


def every(number: int, noun: str) -> str:
    """Return ``both runs``, or ``all 5 runs``."""
    return f"both {noun}s" if number == 2 else f"all {count(number, noun)}"


def shown_first(items: Sequence[_One], most: int | None) -> Sequence[_One]:
    """Return the first ``most``, or all if one is left: a text that says that one more is left out is as long."""
    return items if most is not None and len(items) == most + 1 else items[:most]


def shortened(words: Iterable[str], more: int = 0, most: int | None = None) -> str:
    """Return ``a, b and 3 more``: the first ``most`` words, and how many are left out, here or (``more``) before."""
    texts = list(words)
    shown = texts[:most] if more else shown_first(texts, most)
    left_out = len(texts) - len(shown) + more
    return f"{', '.join(shown)} and {left_out:,} more" if left_out else ", ".join(shown)


def duration(seconds: float, digits: str = ".1f") -> str:
    """Return ``10.7 s``, ``4 min 05 s``, ``1 h 03 min`` or ``2 d 03 h``; ``digits`` is the format below a minute."""
    if seconds < _MINUTE and not (text := f"{seconds:{digits}}").startswith("60"):
        return f"{text} s"
    rounded = round(seconds)
    if rounded < _HOUR:
        return f"{rounded // _MINUTE} min {rounded % _MINUTE:02} s"
    minutes = round(seconds / _MINUTE)
    if minutes < _DAY // _MINUTE:
        return f"{minutes // 60} h {minutes % 60:02} min"
    hours = round(seconds / _HOUR)
    return f"{hours // 24:,} d {hours % 24:02} h"


def size(count: float) -> str:
    """Return a number of bytes as people write it: ``512 bytes``, ``1.5 GiB``."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"


def about(seconds: float) -> str:
    """Return a duration that is an estimate: ``about 90 s``, ``about 5 min``, ``about 2 h 00 min``."""
    minutes = round(seconds / _MINUTE)
    if seconds < 2 * _MINUTE:
        return f"about {seconds:.0f} s"
    return f"about {minutes} min" if minutes < _HOUR // _MINUTE else f"about {duration(_MINUTE * minutes)}"


def brief(number: Number) -> str:
    """Return a number with three digits, ``-`` if there is none."""
    return "-" if number is None else number if isinstance(number, str) else f"{number:.3g}"
