"""Help with names that do not exist: the replacement of a retired setting, the nearest match of a misspelled name."""

import difflib
import functools
from collections.abc import Iterable
from typing import Literal

import msgspec

from detaudit.errors import UnknownNameError
from detaudit.recipe import yamlfile

_MOST = 20


class Retired(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of configs/retired.yaml, which explains the fields."""

    id: str
    names: tuple[str, ...]
    status: Literal["dead", "legacy", "harmful", "redundant", "no-op", "irrelevant"]
    why: str
    replacement: str = ""
    source: str


@functools.cache
def load_retired() -> tuple[Retired, ...]:
    """Read the retired settings."""
    return yamlfile.load(yamlfile.configs_dir() / "retired.yaml", tuple[Retired, ...])


def normal(name: str) -> str:
    """Return the normal form of a setting: ``a_b`` for ``XLA_FLAGS=--a_b=true``, ``--a_b`` and ``A_B``."""
    word = name.strip().lower().removeprefix("xla_flags=").lstrip("-")
    return word.split("=")[0].split("(")[0].strip()


def retired(name: str) -> Retired | None:
    """Return the row of a retired setting, ``None`` for any other name."""
    keys = {name.strip().lower(), normal(name)}
    return next((row for row in load_retired() if any(_key(known) in keys for known in (row.id, *row.names))), None)


def _key(known: str) -> str:
    """Return the normal form of a known name; one with a value is retired only with that value."""
    return known.lower() if "=" in known else normal(known)


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the name that was probably meant, ``""`` if none is as similar as ``cutoff`` says (0 to 1)."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)), "")


def unknown(kind: str, name: str, known: Iterable[str], place: str = "") -> UnknownNameError:
    """Return the error for a name that does not exist (in a ``place``, if given), with the nearest match as a hint."""
    names = list(known)
    near = nearest(name, names, cutoff=0.4)
    hints = [f"Did you mean {near!r}?"] if near else []
    if len(names) <= _MOST:
        hints.append(f"Available: {', '.join(names)}.")
    elif kind.startswith(("flag", "recipe")) and not place:
        hints.append("Run `detaudit recipes` for the full list.")
    return UnknownNameError(f"unknown {kind} {name!r}" + f" in {place}" * bool(place), " ".join(hints))
