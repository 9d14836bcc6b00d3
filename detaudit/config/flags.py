"""The catalogue of flags: the rows of configs/flags/, and how a run applies them."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import msgspec

from detaudit import wire
from detaudit.config import yamlfile
from detaudit.errors import ConfigError, UnknownNameError, UsageError
from detaudit.model import Cause, SourceMatch

Device: TypeAlias = Literal["cpu", "gpu", "multi-gpu"]
Action: TypeAlias = Literal["standard", "fallback", "opt-in", "diagnostic"]

DEVICES: tuple[Device, ...] = get_args(Device)
FRAMEWORKS = (
    *("python", "system", "openmp", "mkl", "onednn", "numpy"),
    *(file for framework in wire.FRAMEWORKS.values() for file in framework.flags),
)
"""Each is a file of the catalogue, in this order."""

if TYPE_CHECKING:
    Framework: TypeAlias = str
else:
    Framework = Literal[FRAMEWORKS]

SEARCHED: tuple[Action, ...] = ("standard", "fallback")
"""The flags that detaudit tries or recommends without being asked to."""

SEED = "SEED"
"""In a row, the placeholder for the seed of the recipe."""

RUN_FOLDER = "RUN_FOLDER"
"""At the start of a variable in a row, the placeholder for a folder that exists, empty at first, for one run only."""

BEFORE_START = "before Python starts"
"""When variables and launchers take effect, as reports say it."""

_COMMAND = " python train.py"
"""How the line of a variable ends."""

COUNTED_CLOCK = "python-counted-clock"
"""The flag with which times that Python measured are the same in every run."""

NO_ASLR = "no-aslr"
"""The only launcher change."""

SEVERAL = {"XLA_FLAGS": " ", "TF_XLA_FLAGS": " ", "GLIBC_TUNABLES": ":"}
"""Variables that hold several settings, with their separators: a flag extends them."""


class Flag(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of the catalogue; configs/flags/README.md explains the fields.

    A flag with a ``parameter`` needs a ``value``, which is then part of its id: ``id=value``.
    """

    id: str
    title: str
    framework: Framework
    when: Literal["before-start", "after-import"]
    action: Action = "standard"
    causes: tuple[Cause, ...]
    by_hand: str
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
    alternatives: tuple[str, ...] = ()
    matches: SourceMatch = SourceMatch()
    expect: dict[str, Any] = {}

    @property
    def by_hand_only(self) -> bool:
        """Whether detaudit cannot apply it, because it belongs in the script."""
        return not (self.env or self.call or self.set or self.patch or self.launcher)

    @property
    def runs_inside(self) -> bool:
        """Whether the recorder applies it, within the process."""
        return self.when == "after-import" and not self.by_hand_only

    @property
    def imported(self) -> str:
        """The module that triggers the recorder to apply it when it is imported."""
        return self.module or self.framework

    @property
    def setting_names(self) -> frozenset[str]:
        """The variables, functions and attributes that it sets, by which people know it."""
        variables = {value if name in SEVERAL else name for name, value in self.env.items()}
        return frozenset((*variables, *self.call, *self.set))

    @property
    def applied_when(self) -> str:
        """When it takes effect, as reports say it."""
        return BEFORE_START if self.when == "before-start" else f"after import {self.imported}"

    @property
    def needs_value(self) -> bool:
        """Whether it still lacks the value that it takes."""
        return bool(self.parameter) and not self.value

    def environment(self, seed: int, folder: str = RUN_FOLDER) -> dict[str, str]:
        """Return the variables that it sets in a run that has this folder; it extends those of SEVERAL."""
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


def holds(name: str, current: str | None, value: str) -> bool:
    """Return whether a variable with the value ``current`` has the setting ``value`` of a flag."""
    if name not in SEVERAL or current is None:
        return current == value
    return value in current.split(SEVERAL[name])


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

    def standard(self, devices: Collection[Device] = DEVICES) -> set[str]:
        """Return the ids of the standard flags for these devices, which make up the recipe ``all``."""
        flags = (flag for flag in self if flag.action == "standard")
        return {flag.id for flag in flags if any(device in devices for device in flag.devices)}

    def get(self, flag_id: str, *others: str) -> Flag:
        """Return a flag, given as ``id`` or ``id=value``.

        Raises UnknownNameError for any other name, with its replacement or the nearest of all flags and ``others`` as
        a hint, and UsageError for a value that the flag does not take.
        """
        row, _, value = flag_id.partition("=")
        if row not in self._flags:
            raise self._unknown(flag_id, others)
        flag = self._flags[row]
        if value and not flag.parameter:
            raise UsageError(f"flag {row!r} takes no value", f"Use --flag {row}.")
        return msgspec.structs.replace(flag, id=flag_id, value=value) if value else flag

    def _unknown(self, name: str, others: tuple[str, ...]) -> UnknownNameError:
        gone = yamlfile.retired(name)
        if gone is not None:
            hint = f"Use {gone.replacement!r} instead." if gone.replacement else "No replacement is needed."
            return UnknownNameError(f"{name!r} is not a flag: {gone.why}", hint)
        setting = f".{yamlfile.normal(name)}"
        known = [
            flag.id for flag in self if any(f".{yamlfile.normal(s)}".endswith(setting) for s in flag.setting_names)
        ]
        if setting != "." and known:
            return UnknownNameError(f"unknown flag {name!r}", f"Flags that set it: {', '.join(known)}.")
        return yamlfile.unknown("flag or recipe" if others else "flag", name, (*self._flags, *others))

    def command(self, flag_id: str) -> str:
        """Return the start of a command that sets what a flag sets before Python starts, with what it requires."""
        flag = self.get(flag_id)
        required = [self.command(one.id) for one in self.select(flag.requires) if one.when == flag.when]
        return " ".join([*(one.removesuffix(_COMMAND) for one in required), flag.by_hand])

    def select(self, ids: Iterable[str]) -> tuple[Flag, ...]:
        """Return the named flags in catalogue order, each once."""
        flags = {flag.id: flag for flag in map(self.get, ids)}
        rows = list(self._flags)
        return tuple(sorted(flags.values(), key=lambda flag: (rows.index(flag.id.partition("=")[0]), flag.id)))


def conflict(flags: Iterable[Flag]) -> tuple[Flag, Flag] | None:
    """Return the first two flags that conflict."""
    pairs = combinations(flags, 2)
    return next(((a, b) for a, b in pairs if b.id in a.conflicts or a.id in b.conflicts), None)


def load_catalogue(path: Path | None = None) -> Catalogue:
    """Read the catalogue, or one file of it. Raises ConfigError for an invalid file or a duplicate id."""
    folder = yamlfile.configs_dir() / "flags"
    files = [path] if path else [folder / f"{framework}.yaml" for framework in FRAMEWORKS]
    flags: list[Flag] = []
    for file in files:
        read = yamlfile.load(file, list[Flag])
        ids = [flag.id for flag in (*flags, *read)]
        duplicate = next((flag_id for flag_id in ids if ids.count(flag_id) > 1), None)
        if duplicate:
            raise ConfigError(f"{file}: duplicate flag {duplicate!r}", "Rename one of them.")
        flags += read
    catalogue = Catalogue(flags)
    for flag in flags:
        catalogue.select((*flag.requires, *flag.conflicts, *flag.alternatives))
    return catalogue
