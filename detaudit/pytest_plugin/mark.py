"""The arguments of ``@pytest.mark.deterministic(…)``."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NAME = "deterministic"

LINE = (
    f"{NAME}(runs=3, recipe='none', flags=(), seed=None, timeout=None, until=None): run the test in fresh processes "
    "and fail unless what it trains and returns is bit-identical in all of them (detaudit)"
)
"""The description that ``pytest --markers`` prints."""


class MarkError(Exception):
    """Invalid arguments of the mark; the message names the mark and the problem."""


@dataclass(frozen=True)
class Mark:
    """The arguments of the mark, like the options of ``detaudit run``. ``timeout`` is in seconds per run.

    ``until`` is the step after which each run is ended, or a time such as ``90s``; then the value that the test returns
    is not compared.
    """

    runs: int = 3
    recipe: str = "none"
    flags: tuple[str, ...] = ()
    seed: int | None = None
    timeout: float | None = None
    until: int | str | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The options of ``detaudit run``, which stops as soon as two runs differ."""
        options = ["--runs", str(self.runs), "--recipe", self.recipe, "--fail-fast"]
        options += [option for flag in self.flags for option in ("--flag", flag)]
        options += ["--seed", str(self.seed)] if self.seed is not None else []
        options += ["--timeout", f"{self.timeout:g}"] if self.timeout is not None else []
        options += ["--until", str(self.until)] if self.until is not None else []
        return tuple(options)


def read(arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Mark:
    """Return the arguments of a mark. Raises MarkError for an unknown or invalid argument."""
    known = tuple(Mark.__dataclass_fields__)
    unknown = [name for name in keywords if name not in known]
    if arguments or unknown:
        problem = f"unknown argument {unknown[0]!r}" if unknown else "arguments must be keywords"
        raise _error(f"{problem}; available: {', '.join(known)}")
    values = dict(keywords)
    flags = values.get("flags", ())
    values["flags"] = (flags,) if isinstance(flags, str) else tuple(flags) if _is_iterable(flags) else flags
    if isinstance(values.get("recipe"), os.PathLike):
        values["recipe"] = os.fspath(values["recipe"])
    mark = Mark(**values)
    _check(mark)
    return mark


def _check(mark: Mark) -> None:
    if not _is_whole(mark.runs) or mark.runs < 2:
        raise _error(f"runs must be an integer of at least 2, got {mark.runs!r}")
    if not _is_text(mark.recipe):
        raise _error(f"recipe must be a recipe name (see `detaudit recipes`) or a YAML file, got {mark.recipe!r}")
    if not _are_texts(mark.flags):
        raise _error(f"flags must be flag IDs (see `detaudit recipes`), got {mark.flags!r}")
    if mark.seed is not None and (not _is_whole(mark.seed) or mark.seed < 0):
        raise _error(f"seed must be an integer of at least 0, got {mark.seed!r}")
    if mark.timeout is not None and (not _is_number(mark.timeout) or not 0 < mark.timeout < math.inf):
        raise _error(f"timeout must be a positive number of seconds, got {mark.timeout!r}")
    if mark.until is not None and not (_is_whole(mark.until) or _is_text(mark.until)):
        raise _error(f"until must be a step, or a time such as '90s', got {mark.until!r}")


def _error(problem: str) -> MarkError:
    return MarkError(f"@pytest.mark.{NAME}: {problem}")


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
