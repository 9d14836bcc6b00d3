"""Recipes: named sets of flags with a seed, from configs/recipes/ or from a user's own YAML file."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from detaudit.errors import ConfigError, UsageError
from detaudit.recipe import yamlfile
from detaudit.recipe.flags import DEVICES, Catalogue, Device, Flag, conflict
from detaudit.recipe.names import unknown
from detaudit.recipe.yamlfile import configs_dir

DEFAULT_SEED = 0
MAX_SEED = 2**32 - 1
"""The widest range that PYTHONHASHSEED and NumPy both take."""


class RecipeFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The layout of a recipe file."""

    name: Annotated[str, Meta(description="Stands above the table of its runs.", min_length=1)]
    flags: Annotated[
        Literal["all"] | tuple[str, ...],
        Meta(description="Ids of flags, which `detaudit recipes` lists, or `all` for every flag that applies here."),
    ]
    title: Annotated[str, Meta(description="One line for people.")] = ""
    extends: Annotated[
        tuple[str, ...], Meta(description="Recipes, by name or by YAML file, whose flags are in this one too.")
    ] = ()
    seed: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_SEED)] | None, Meta(description="What SEED stands for in flags; 0 by default.")
    ] = None


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe as it will be applied; ``options`` are the words of the command line that ask for it."""

    name: str
    seed: int
    flags: tuple[Flag, ...]
    options: tuple[str, ...] = ()


def names() -> list[str]:
    """Return the names of the recipes that ship with detaudit."""
    return sorted(path.stem for path in (configs_dir() / "recipes").glob("*.yaml"))


def _locate(name: str) -> Path:
    if name in names():
        return configs_dir() / "recipes" / f"{name}.yaml"
    path = Path(name)
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return path
    raise unknown("recipe", name, names())


def read_recipe(name: str) -> RecipeFile:
    """Return a recipe as it stands in its file. Raises as load_recipe does."""
    return yamlfile.load(_locate(name), RecipeFile)


def _collect(
    name: str, recipe: RecipeFile, catalogue: Catalogue, devices: Collection[Device], seen: tuple[str, ...] = ()
) -> set[str]:
    path = _locate(name)
    if str(path) in seen:
        raise ConfigError(f"{path}: the recipe extends itself", "Take the circle out of `extends`.")
    ids = catalogue.automatic(devices) if recipe.flags == "all" else set()
    for number, flag_id in enumerate(recipe.flags if recipe.flags != "all" else ()):
        try:
            ids.add(_applied(catalogue.get(flag_id)))
        except UsageError as error:
            raise _at(error, path, f".flags[{number}]") from error
    for number, base in enumerate(recipe.extends):
        try:
            _locate(base)
        except UsageError as error:
            raise _at(error, path, f".extends[{number}]") from error
        ids |= _collect(base, read_recipe(base), catalogue, devices, (*seen, str(path)))
    return ids


def _at(error: UsageError, path: Path, where: str) -> UsageError:
    return type(error)(f"{yamlfile.place(path, where)}: {error.message}", error.cure)


def _applied(flag: Flag) -> str:
    """Return a flag's id. Raises UsageError for one that only its author can put into the script."""
    if flag.is_advice:
        raise UsageError(f"detaudit cannot apply {flag.id!r}: it must stand in the script", f"Write {flag.in_script}")
    return flag.id


def _check_values(flags: Iterable[Flag]) -> None:
    for flag in flags:
        if flag.needs_value:
            raise UsageError(f"the flag {flag.id!r} needs a value", f"Write {flag.id}={flag.parameter}.")


def load_recipe(
    name: str,
    catalogue: Catalogue,
    *,
    seed: int | None = None,
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
    devices: Collection[Device] = DEVICES,
) -> Recipe:
    """Return the recipe ``name`` (a shipped one, or a YAML file) with flags added and taken away.

    ``seed`` wins over the file's own. A flag brings the flags that it requires, unless those were taken away.
    ``all`` holds what does something on one of ``devices``; flags that are named are never left out.

    Raises UnknownNameError for a recipe or flag that does not exist, ConfigError for a broken file, UsageError for
    flags that cannot stand beside each other, that lack their value, or that must stand in the script.
    """
    recipe = read_recipe(name)
    ids = _collect(name, recipe, catalogue, devices)
    add = {_applied(catalogue.get(flag_id)) for flag_id in add}
    remove = {catalogue.get(flag_id).id for flag_id in remove}
    ids |= add
    while more := {needed for flag in catalogue.select(ids) for needed in flag.requires} - ids:
        ids |= more
    flags = catalogue.select(ids - remove)
    _check_values(flags)
    if (two := conflict(flags)) is not None:
        a, b = (flag.id for flag in two)
        raise UsageError(
            f"the recipe {recipe.name!r} holds {a!r} and {b!r}, which cannot stand beside each other",
            f"Take one of them out: --no-flag {a} or --no-flag {b}",
        )
    changes = [f"+{flag_id}" for flag_id in sorted(add)] + [f"-{flag_id}" for flag_id in sorted(remove)]
    options = ["--recipe", name] if name != "none" else []
    options += [word for flag_id in sorted(add) for word in ("--flag", flag_id)]
    options += [word for flag_id in sorted(remove) for word in ("--no-flag", flag_id)]
    options += ["--seed", str(seed)] if seed is not None else []
    file_seed = recipe.seed if recipe.seed is not None else DEFAULT_SEED
    return Recipe(
        name=" ".join([recipe.name, *changes]),
        seed=file_seed if seed is None else seed,
        flags=flags,
        options=tuple(options),
    )
