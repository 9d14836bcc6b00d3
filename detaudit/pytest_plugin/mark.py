"""What ``@pytest.mark.deterministic(…)`` asks for."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NAME = "deterministic"

LINE = (
    f"{NAME}(runs=3, recipe='none', flags=(), seed=None, timeout=None): run the test in fresh processes and fail "
    "unless what it trains and returns is bit-identical in all of them (detaudit)"
)
"""How ``pytest --markers`` shows it."""


class MarkError(Exception):
    """The mark's arguments cannot be obeyed as they stand; the message names it and says how."""


@dataclass(frozen=True)
class Mark:
    """The arguments of the mark: those of ``detaudit run``. ``timeout`` is in seconds, for one run."""

    runs: int = 3
    recipe: str = "none"
    flags: tuple[str, ...] = ()
    seed: int | None = None
    timeout: float | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The same as options of ``detaudit run``, which stops at the first two runs that differ."""
        words = ["--runs", str(self.runs), "--recipe", self.recipe, "--fail-fast"]
        words += [word for flag in self.flags for word in ("--flag", flag)]
        words += ["--seed", str(self.seed)] if self.seed is not None else []
        words += ["--timeout", f"{self.timeout:g}"] if self.timeout is not None else []
        return tuple(words)


def read(arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Mark:
    """Return what the mark asks for. Raises MarkError for an argument that does not exist or makes no sense."""
    known = tuple(Mark.__dataclass_fields__)
    unknown = [name for name in keywords if name not in known]
    if arguments or unknown:
        what = f"no argument {unknown[0]!r}" if unknown else "keywords only"
        raise _wrong(f"takes {what}; those that there are: {', '.join(known)}")
    given = dict(keywords)
    flags = given.get("flags", ())
    given["flags"] = (flags,) if isinstance(flags, str) else tuple(flags) if _is_iterable(flags) else flags
    if isinstance(given.get("recipe"), os.PathLike):
        given["recipe"] = os.fspath(given["recipe"])
    mark = Mark(**given)
    _check(mark)
    return mark


def _check(mark: Mark) -> None:
    if not _is_whole(mark.runs) or mark.runs < 2:
        raise _wrong(f"runs={mark.runs!r}: a whole number from 2, since one run has nothing to be compared with")
    if not _is_text(mark.recipe):
        raise _wrong(f"recipe={mark.recipe!r}: the name of a recipe (see `detaudit recipes`), or a YAML file")
    if not _are_texts(mark.flags):
        raise _wrong(f"flags={mark.flags!r}: the ids of flags (see `detaudit recipes`)")
    if mark.seed is not None and (not _is_whole(mark.seed) or mark.seed < 0):
        raise _wrong(f"seed={mark.seed!r}: a whole number from 0")
    if mark.timeout is not None and (not _is_number(mark.timeout) or not mark.timeout > 0):
        raise _wrong(f"timeout={mark.timeout!r}: seconds, more than 0")


def _wrong(words: str) -> MarkError:
    return MarkError(f"@pytest.mark.{NAME}: {words}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _are_texts(value: object) -> bool:
    return isinstance(value, tuple) and all(map(_is_text, value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_iterable(value: object) -> bool:
    return isinstance(value, list | tuple | set | frozenset)
