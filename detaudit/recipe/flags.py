"""The catalogue of flags: rows of configs/flags/, and what each becomes in a run."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from detaudit.errors import ConfigError, UnknownNameError, UsageError
from detaudit.recipe import names, yamlfile

Framework: TypeAlias = Literal[
    "python",
    "system",
    "openmp",
    "mkl",
    "onednn",
    "numpy",
    "torch",
    "cuda",
    "nccl",
    "horovod",
    "tensorflow",
    "keras",
    "jax",
]
Cause: TypeAlias = Literal["seed", "data", "kernel", "memory", "threads", "hash", "order"]
Device: TypeAlias = Literal["cpu", "gpu", "multi-gpu"]
Action: TypeAlias = Literal["auto", "fallback", "advise", "diagnose"]

DEVICES: tuple[Device, ...] = get_args(Device)
FRAMEWORKS: tuple[Framework, ...] = get_args(Framework)
"""Each is a file of the catalogue, in this order."""

SEED = "SEED"
"""In a row, stands for the recipe's seed."""

RUN_FOLDER = "RUN_FOLDER"
"""At the start of a variable in a row, stands for a folder that is empty when a run starts, and gone after it."""

NO_ASLR = "no-aslr"
"""The one launcher change there is."""

SEVERAL = {"XLA_FLAGS": " ", "TF_XLA_FLAGS": " ", "GLIBC_TUNABLES": ":"}
"""Variables that hold several settings, and what stands between them: a flag's is added to what is there."""


class Flag(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of the catalogue; configs/flags/README.md says what each field means.

    A row with a ``parameter`` can be applied only with a ``value``, which is then part of its id: ``id=value``.
    """

    id: str
    title: str
    framework: Framework
    when: Literal["before-start", "after-import"]
    action: Action = "auto"
    causes: tuple[Cause, ...]
    in_script: str
    source: str
    note: str = ""
    module: str = ""
    env: dict[str, str] = {}
    call: dict[str, tuple[Any, ...]] = {}
    set: dict[str, Any] = {}
    patch: str = ""
    parameter: str = ""
    value: str = ""
    launcher: Literal["", "no-aslr"] = ""
    devices: tuple[Device, ...] = ("cpu", "gpu", "multi-gpu")
    since: str = ""
    until: str = ""
    cost: str = ""
    requires: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    mends: tuple[str, ...] = ()
    in_force: dict[str, Any] = {}

    @property
    def is_advice(self) -> bool:
        """Whether it must stand in the script: detaudit cannot apply it."""
        return not (self.env or self.call or self.set or self.patch or self.launcher)

    @property
    def runs_inside(self) -> bool:
        """Whether the recorder applies it, in the process."""
        return self.when == "after-import" and not self.is_advice

    @property
    def imported(self) -> str:
        """The module after whose import the recorder applies it."""
        return self.module or self.framework

    @property
    def words(self) -> frozenset[str]:
        """The variables, functions and attributes by which people know it."""
        variables = {value if name in SEVERAL else name for name, value in self.env.items()}
        return frozenset((*variables, *self.call, *self.set))

    @property
    def where(self) -> str:
        """Return where its line belongs in a script, in words."""
        return "before Python starts" if self.when == "before-start" else f"after import {self.imported}"

    @property
    def needs_value(self) -> bool:
        """Whether it cannot be applied as it stands, because nobody has said to what."""
        return bool(self.parameter) and not self.value

    def environment(self, seed: int, folder: str = RUN_FOLDER) -> dict[str, str]:
        """Return the variables it sets in a run that has this folder; those of SEVERAL hold more than this."""
        filled = {name: str(_fill(value, seed)) for name, value in self.env.items()}
        return {name: re.sub(f"^{RUN_FOLDER}\\b", lambda _: folder, value) for name, value in filled.items()}

    def order(self, seed: int) -> str:
        """Return the line of wire.ENV_FLAGS that makes the recorder apply it."""
        order: dict[str, Any] = {"id": self.id}
        if self.call:
            order["call"] = _fill(self.call, seed)
        if self.set:
            order["set"] = _fill(self.set, seed)
        if self.patch:
            order |= {"patch": self.patch, "seed": seed}
        if self.value:
            order["value"] = self.value
        return f"{self.imported}\t{json.dumps(order)}"


def _fill(value: Any, seed: int) -> Any:
    if isinstance(value, str):
        return seed if value == SEED else value
    if isinstance(value, Mapping):
        return {key: _fill(item, seed) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_fill(item, seed) for item in value]
    return value


def with_variables(
    base: Mapping[str, str], flags: Iterable[Flag], seed: int, folder: str = RUN_FOLDER
) -> dict[str, str]:
    """Return an environment with the variables of these flags, in a run that has this folder."""
    env = dict(base)
    for flag in flags:
        for name, value in flag.environment(seed, folder).items():
            if name not in SEVERAL:
                env[name] = value
            elif not holds(name, env.get(name), value):
                env[name] = SEVERAL[name].join(filter(None, [env.get(name), value]))
    return env


def holds(name: str, found: str | None, value: str) -> bool:
    """Whether a variable that was found to be ``found`` sets what a flag's ``value`` sets."""
    if name not in SEVERAL or found is None:
        return found == value
    return value in found.split(SEVERAL[name])


class Catalogue:
    """All flags, in the order of the files."""

    def __init__(self, flags: Iterable[Flag]) -> None:
        self._flags = {flag.id: flag for flag in flags}

    def __iter__(self) -> Iterator[Flag]:
        return iter(self._flags.values())

    @property
    def ids(self) -> tuple[str, ...]:
        """All ids."""
        return tuple(self._flags)

    def automatic(self, devices: Collection[Device] = DEVICES) -> set[str]:
        """Return the ids of what the recipe ``all`` is made of, where there are these devices."""
        found = (flag for flag in self if flag.action == "auto")
        return {flag.id for flag in found if any(device in devices for device in flag.devices)}

    def get(self, flag_id: str, *others: str) -> Flag:
        """Return a flag, given as ``id`` or ``id=value``.

        Raises UnknownNameError, which says what became of it, or names the nearest of all flags and ``others``, and
        UsageError for a value that it does not take.
        """
        row, _, value = flag_id.partition("=")
        if row not in self._flags:
            raise self._unknown(flag_id, others)
        flag = self._flags[row]
        if value and not flag.parameter:
            raise UsageError(f"the flag {row!r} takes no value", f"Write --flag {row}.")
        return msgspec.structs.replace(flag, id=flag_id, value=value) if value else flag

    def _unknown(self, name: str, others: tuple[str, ...]) -> UnknownNameError:
        gone = names.retired(name)
        if gone is not None:
            instead = f"{gone.instead!r} is what helps today." if gone.instead else "Nothing needs to stand in for it."
            return UnknownNameError(f"{name!r} is no flag: {gone.why}", instead)
        word = names.normal(name)
        known = [flag.id for flag in self if any(f".{names.normal(w)}".endswith(f".{word}") for w in flag.words)]
        if word and known:
            return UnknownNameError(f"there is no flag {name!r}", f"This is set by: {', '.join(known)}.")
        return names.unknown("flag or recipe" if others else "flag", name, (*self._flags, *others))

    def select(self, ids: Iterable[str]) -> tuple[Flag, ...]:
        """Return the named flags in catalogue order, each once."""
        wanted = {flag.id: flag for flag in map(self.get, ids)}
        rows = list(self._flags)
        return tuple(sorted(wanted.values(), key=lambda flag: (rows.index(flag.id.partition("=")[0]), flag.id)))


def conflict(flags: Iterable[Flag]) -> tuple[Flag, Flag] | None:
    """Return the first two flags that cannot stand beside each other."""
    pairs = combinations(flags, 2)
    return next(((a, b) for a, b in pairs if b.id in a.conflicts or a.id in b.conflicts), None)


def load_catalogue(path: Path | None = None) -> Catalogue:
    """Read the catalogue, or one file of it. Raises ConfigError for a broken file or an id that is there twice."""
    folder = yamlfile.configs_dir() / "flags"
    files = [path] if path else [folder / f"{framework}.yaml" for framework in FRAMEWORKS]
    flags: list[Flag] = []
    for file in files:
        read = yamlfile.load(file, list[Flag])
        ids = [flag.id for flag in (*flags, *read)]
        twice = next((flag_id for flag_id in ids if ids.count(flag_id) > 1), None)
        if twice:
            raise ConfigError(f"{file}: the flag {twice!r} is there twice", "Give one of them another id.")
        flags += read
    catalogue = Catalogue(flags)
    for flag in flags:
        catalogue.select((*flag.requires, *flag.conflicts, *flag.instead))
    return catalogue
