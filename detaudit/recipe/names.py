"""Names that do not exist: what became of those that people know, and the nearest to those that they misspell."""

import difflib
import functools
from collections.abc import Iterable
from typing import Literal

import msgspec

from detaudit.errors import UnknownNameError
from detaudit.recipe import yamlfile

_MOST = 20


class Retired(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of configs/retired.yaml: a setting that detaudit does not offer, the words for it, and why."""

    id: str
    names: tuple[str, ...]
    status: Literal["dead", "legacy", "harmful", "redundant", "no-op", "irrelevant"]
    why: str
    instead: str = ""
    source: str


@functools.cache
def load_retired() -> tuple[Retired, ...]:
    """Read what is no flag, or no longer one."""
    return yamlfile.load(yamlfile.configs_dir() / "retired.yaml", tuple[Retired, ...])


def normal(name: str) -> str:
    """Return a setting as it is looked up: ``XLA_FLAGS=--a_b=true``, ``--a_b`` and ``A_B`` are one."""
    word = name.strip().lower().removeprefix("xla_flags=").lstrip("-")
    return word.split("=")[0].split("(")[0].strip()


def retired(name: str) -> Retired | None:
    """Return what became of a setting, ``None`` if it is none of the retired ones."""
    words = {name.strip().lower(), normal(name)}
    return next((row for row in load_retired() if any(_key(known) in words for known in (row.id, *row.names))), None)


def _key(known: str) -> str:
    """Return a known name as it is looked up; one with a value is retired only with that value."""
    return known.lower() if "=" in known else normal(known)


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for a name that does not exist, with the nearest that does."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    cure = f"Did you mean {near[0]!r}? " if near else ""
    there = f"There are: {', '.join(names)}." if len(names) <= _MOST else "`detaudit recipes` lists all."
    return UnknownNameError(f"there is no {kind} {name!r}", cure + there)
