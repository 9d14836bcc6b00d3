"""The table of variations: rows of configs/variations.yaml, and the value that each takes in a run."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from detaudit.errors import ConfigError
from detaudit.recipe import yamlfile
from detaudit.recipe.flags import Catalogue, Cause, load_catalogue
from detaudit.recipe.names import unknown

ALL = "all"
"""On the command line: every variation that must not change a result."""

_NUMBER, _VALUE = "NUMBER", "VALUE"


class Values(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What something is in the control, and what it becomes one value after another."""

    control: str
    varied: tuple[str, ...]

    def at(self, number: int) -> str:
        """Return the control's value for 0, else the value at this place of those that vary."""
        if number == 0:
            return self.control
        return str(number) if (value := self.varied[(number - 1) % len(self.varied)]) == _NUMBER else value


class Variation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of the table; configs/variations.yaml says what each field means."""

    id: str
    title: str
    cause: Cause
    cure: str
    source: str
    legitimate: bool = False
    env: dict[str, Values] = {}
    patch: dict[str, str] = {}
    launcher: Literal["", "addresses", "load", "folder"] = ""
    value: Values | None = None
    shown: str = ""
    needs: Literal["", "aslr", "glibc", "avx2", "locale", "isolate"] = ""
    settings: tuple[str, ...] = ()
    mends: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    note: str = ""

    @property
    def moves(self) -> frozenset[str]:
        """What reads otherwise in the runs because of it: variables, and switches of the libraries."""
        return frozenset((*self.env, *self.settings))

    def environment(self, number: int) -> dict[str, str]:
        """Return the variables of the run with this number, 0 for the control."""
        return {name: values.at(number) for name, values in self.env.items()}

    def orders(self, number: int) -> list[str]:
        """Return the lines of wire.ENV_FLAGS that make the recorder carry it out."""
        return [
            f"{module}\t{json.dumps({'id': order_id(self.id), 'vary': change, 'number': int(self.at(number))})}"
            for module, change in self.patch.items()
        ]

    def at(self, number: int) -> str:
        """Return the value of its patch or its launcher change."""
        return self.value.at(number) if self.value is not None else ""

    def words(self, number: int) -> str:
        """Return its value in the run with this number, for people."""
        if self.env:
            return " ".join(f"{name}={value}" for name, value in self.environment(number).items())
        return self.shown.replace(_VALUE, self.at(number)) if self.at(number) else "as it is"


def order_id(variation: str) -> str:
    """Return the id by which the recorder tells how a variation went; no flag has such a one."""
    return f"vary:{variation}"


def load_variations(path: Path | None = None, catalogue: Catalogue | None = None) -> tuple[Variation, ...]:
    """Read the table. Raises ConfigError for a broken file or an id that is there twice."""
    path = path or yamlfile.configs_dir() / "variations.yaml"
    table = tuple(yamlfile.load(path, list[Variation]))
    catalogue = catalogue or load_catalogue()
    ids = [variation.id for variation in table]
    for row in table:
        if ids.count(row.id) > 1:
            raise ConfigError(f"{path}: the variation {row.id!r} is there twice", "Give one of them another id.")
        if bool(row.env) + bool(row.patch) + bool(row.launcher) != 1 or bool(row.env) == bool(row.value):
            raise ConfigError(
                f"{path}: the variation {row.id!r} needs either `env`, or `value` with `patch` or `launcher`",
                "See configs/variations.yaml for rows that are right.",
            )
        if not all(values.varied for values in (*row.env.values(), *([row.value] if row.value else []))):
            raise ConfigError(f"{path}: the variation {row.id!r} varies nothing", "Put a value into `varied`.")
        catalogue.select(row.flags)
    return table


def select(table: Iterable[Variation], names: Iterable[str]) -> tuple[Variation, ...]:
    """Return the variations of these names in the order of the table; ``all`` stands for what must change nothing.

    Raises UnknownNameError for one that does not exist.
    """
    table, names = tuple(table), tuple(names)
    ids = [variation.id for variation in table]
    for name in names:
        if name not in (*ids, ALL):
            raise unknown("variation", name, (*ids, ALL))
    return tuple(row for row in table if row.id in names or (ALL in names and not row.legitimate))
