"""The catalogue of flags: rows of configs/flags.yaml, and what each becomes in a run."""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from detaudit.errors import ConfigError, UnknownNameError, UsageError
from detaudit.recipe import yamlfile

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

SEED = "SEED"
"""In a row, stands for the recipe's seed."""

RUN_FOLDER = "RUN_FOLDER"
"""At the start of a variable in a row, stands for a folder that is empty when a run starts, and gone after it."""

NO_ASLR = "no-aslr"
"""The one launcher change there is."""


class Flag(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of the catalogue; configs/flags.yaml says what each field means.

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
    in_force: dict[str, Any] = {}

    @property
    def runs_inside(self) -> bool:
        """Whether the recorder applies it, in the process."""
        return self.when == "after-import"

    @property
    def needs_value(self) -> bool:
        """Whether it cannot be applied as it stands, because nobody has said to what."""
        return bool(self.parameter) and not self.value

    def environment(self, seed: int, folder: str = RUN_FOLDER) -> dict[str, str]:
        """Return the variables it sets in a run that has this folder."""
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
        return f"{self.module or self.framework}\t{json.dumps(order)}"


def _fill(value: Any, seed: int) -> Any:
    if isinstance(value, str):
        return seed if value == SEED else value
    if isinstance(value, Mapping):
        return {key: _fill(item, seed) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_fill(item, seed) for item in value]
    return value


class Catalogue:
    """All flags, in the order of the file."""

    def __init__(self, flags: Iterable[Flag]) -> None:
        self._flags = {flag.id: flag for flag in flags}

    def __iter__(self) -> Iterator[Flag]:
        return iter(self._flags.values())

    @property
    def ids(self) -> tuple[str, ...]:
        """All ids."""
        return tuple(self._flags)

    @property
    def automatic(self) -> set[str]:
        """The ids of what the recipe ``all`` is made of."""
        return {flag.id for flag in self._flags.values() if flag.action == "auto"}

    def get(self, flag_id: str) -> Flag:
        """Return a flag, given as ``id`` or ``id=value``.

        Raises UnknownNameError, which names the nearest one there is, or UsageError for a value that it does not take.
        """
        row, _, value = flag_id.partition("=")
        if row not in self._flags:
            raise unknown("flag", row, self._flags)
        flag = self._flags[row]
        if value and not flag.parameter:
            raise UsageError(f"the flag {row!r} takes no value", f"Write --flag {row}.")
        return msgspec.structs.replace(flag, id=flag_id, value=value) if value else flag

    def select(self, ids: Iterable[str]) -> tuple[Flag, ...]:
        """Return the named flags in catalogue order, each once."""
        wanted = {flag.id: flag for flag in map(self.get, ids)}
        rows = list(self._flags)
        return tuple(sorted(wanted.values(), key=lambda flag: (rows.index(flag.id.partition("=")[0]), flag.id)))


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for a name that does not exist, with the nearest that does."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    cure = f"Did you mean {near[0]!r}? " if near else ""
    return UnknownNameError(f"there is no {kind} {name!r}", f"{cure}There are: {', '.join(names)}.")


def configs_dir() -> Path:
    """Return the folder of flags.yaml and recipes/: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "configs"
    return installed if installed.is_dir() else package.parent / "configs"


def load_catalogue(path: Path | None = None) -> Catalogue:
    """Read the catalogue. Raises ConfigError for a broken file or an id that is there twice."""
    path = path or configs_dir() / "flags.yaml"
    flags = yamlfile.load(path, list[Flag])
    ids = [flag.id for flag in flags]
    twice = next((flag_id for flag_id in ids if ids.count(flag_id) > 1), None)
    if twice:
        raise ConfigError(f"{path}: the flag {twice!r} is there twice", "Give one of them another id.")
    catalogue = Catalogue(flags)
    for flag in flags:
        catalogue.select((*flag.requires, *flag.conflicts, *flag.instead))
    return catalogue
