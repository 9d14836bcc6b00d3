"""Recipes: named sets of flags with a seed, from configs/recipes/ or from a user's own YAML file."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from detaudit.errors import ConfigError, UsageError
from detaudit.recipe import yamlfile
from detaudit.recipe.flags import Catalogue, Flag, configs_dir, unknown

DEFAULT_SEED = 0
MAX_SEED = 2**32 - 1
"""The widest range that PYTHONHASHSEED and NumPy both take."""


class RecipeFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The layout of a recipe file."""

    name: str
    flags: Literal["all"] | tuple[str, ...]
    title: str = ""
    extends: tuple[str, ...] = ()
    seed: int | None = None


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


def _collect(name: str, catalogue: Catalogue, seen: tuple[str, ...]) -> tuple[RecipeFile, set[str]]:
    path = _locate(name)
    if str(path) in seen:
        raise ConfigError(f"{path}: the recipe extends itself", "Take the circle out of `extends`.")
    recipe = yamlfile.load(path, RecipeFile)
    ids = catalogue.automatic if recipe.flags == "all" else {catalogue.get(i).id for i in recipe.flags}
    for base in recipe.extends:
        ids |= _collect(base, catalogue, (*seen, str(path)))[1]
    return recipe, ids


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
) -> Recipe:
    """Return the recipe ``name`` (a shipped one, or a YAML file) with flags added and taken away.

    ``seed`` wins over the file's own. A flag brings the flags that it requires, unless those were taken away.

    Raises UnknownNameError for a recipe or flag that does not exist, UsageError for a flag that lacks its value,
    ConfigError for a broken file.
    """
    recipe, ids = _collect(name, catalogue, ())
    add = {catalogue.get(flag_id).id for flag_id in add}
    remove = {catalogue.get(flag_id).id for flag_id in remove}
    ids |= add
    while more := {needed for flag in catalogue.select(ids) for needed in flag.requires} - ids:
        ids |= more
    _check_values(catalogue.select(ids - remove))
    changes = [f"+{flag_id}" for flag_id in sorted(add)] + [f"-{flag_id}" for flag_id in sorted(remove)]
    options = ["--recipe", name] if name != "none" else []
    options += [word for flag_id in sorted(add) for word in ("--flag", flag_id)]
    options += [word for flag_id in sorted(remove) for word in ("--no-flag", flag_id)]
    options += ["--seed", str(seed)] if seed is not None else []
    file_seed = recipe.seed if recipe.seed is not None else DEFAULT_SEED
    return Recipe(
        name=" ".join([recipe.name, *changes]),
        seed=file_seed if seed is None else seed,
        flags=catalogue.select(ids - remove),
        options=tuple(options),
    )
