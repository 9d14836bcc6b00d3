"""The table of variations, configs/variations.yaml, and the value of each in a run."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from detaudit.config import yamlfile
from detaudit.config.flags import Catalogue, load_catalogue
from detaudit.config.yamlfile import unknown
from detaudit.errors import ConfigError
from detaudit.model import Cause, SourceMatch

ALL = "all"
"""On the command line, every variation that must not change the result of a correct script."""

_NUMBER, _VALUE = "NUMBER", "VALUE"


class Values(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The control value of a variation, and its other values in turn."""

    control: str
    varied: tuple[str, ...]

    def at(self, number: int) -> str:
        """Return the control value for 0, else this entry of ``varied``, which starts over at its end."""
        if number == 0:
            return self.control
        return str(number) if (value := self.varied[(number - 1) % len(self.varied)]) == _NUMBER else value


class Variation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of the table; configs/variations.yaml explains the fields."""

    id: str
    title: str
    cause: Cause
    fix: str
    source: str
    expected: bool = False
    env: dict[str, Values] = {}
    patch: dict[str, str] = {}
    launcher: Literal["", "addresses", "load", "folder"] = ""
    value: Values | None = None
    label: str = ""
    needs: Literal["", "aslr", "glibc", "avx2", "locale", "isolate"] = ""
    settings: tuple[str, ...] = ()
    matches: SourceMatch = SourceMatch()
    flags: tuple[str, ...] = ()
    note: str = ""

    @property
    def varied_settings(self) -> frozenset[str]:
        """The variables and library settings that it changes."""
        return frozenset((*self.env, *self.settings))

    def environment(self, number: int) -> dict[str, str]:
        """Return the environment variables for this number, 0 for the control."""
        return {name: values.at(number) for name, values in self.env.items()}

    def orders(self, number: int) -> list[str]:
        """Return the lines of wire.ENV_FLAGS that make the recorder apply it."""
        return [
            f"{module}\t{json.dumps({'id': order_id(self.id), 'vary': change, 'number': int(self.at(number))})}"
            for module, change in self.patch.items()
        ]

    def at(self, number: int) -> str:
        """Return the value of its patch or its launcher change."""
        return self.value.at(number) if self.value is not None else ""

    def describe(self, number: int) -> str:
        """Return how reports show its value for this number."""
        if self.env:
            return " ".join(f"{name}={value}" for name, value in self.environment(number).items())
        return self.label.replace(_VALUE, self.at(number)) if self.at(number) else "unchanged"


def order_id(variation: str) -> str:
    """Return the id with which the recorder reports on a variation; no flag has such an id."""
    return f"vary:{variation}"


def load_variations(path: Path | None = None, catalogue: Catalogue | None = None) -> tuple[Variation, ...]:
    """Read the table. Raises ConfigError for an invalid file or a duplicate id."""
    path = path or yamlfile.configs_dir() / "variations.yaml"
    table = tuple(yamlfile.load(path, list[Variation]))
    catalogue = catalogue or load_catalogue()
    ids = [variation.id for variation in table]
    for row in table:
        if ids.count(row.id) > 1:
            raise ConfigError(f"{path}: duplicate variation {row.id!r}", "Rename one of them.")
        if bool(row.env) + bool(row.patch) + bool(row.launcher) != 1 or bool(row.env) == bool(row.value):
            raise ConfigError(
                f"{path}: variation {row.id!r} needs either `env`, or `value` with `patch` or `launcher`",
                "See configs/variations.yaml for valid rows.",
            )
        if not all(values.varied for values in (*row.env.values(), *([row.value] if row.value else []))):
            raise ConfigError(f"{path}: variation {row.id!r} has no values to vary", "Add a value to `varied`.")
        catalogue.select(row.flags)
    return table


def select(table: Iterable[Variation], names: Iterable[str]) -> tuple[Variation, ...]:
    """Return the variations with these names in the order of the table; ``all`` means those that must change nothing.

    Raises UnknownNameError for an unknown name.
    """
    table, names = tuple(table), tuple(names)
    ids = [variation.id for variation in table]
    for name in names:
        if name not in (*ids, ALL):
            raise unknown("variation", name, (*ids, ALL))
    return tuple(row for row in table if row.id in names or (ALL in names and not row.expected))
