"""Named sets of flags with a seed, and the schema of their files."""

import contextlib
import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from detaudit.config import yamlfile
from detaudit.config.flags import DEVICES, Catalogue, Device, Flag, conflict
from detaudit.config.yamlfile import configs_dir, nearest, unknown
from detaudit.errors import ConfigError, UnknownNameError, UsageError

# Recipes: named sets of flags with a seed, from configs/recipes/ or from a user's own YAML file.


DEFAULT_SEED = 0
MAX_SEED = 2**32 - 1
"""The largest seed that both PYTHONHASHSEED and NumPy accept."""


class RecipeFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The layout of a recipe file."""

    name: Annotated[str, Meta(description="Recipe name, shown in reports.", min_length=1)]
    flags: Annotated[
        Literal["all"] | tuple[str, ...],
        Meta(description="Flag IDs (see `detaudit recipes`), or `all`: the standard flags for this machine's devices."),
    ]
    title: Annotated[str, Meta(description="One-line description.")] = ""
    extends: Annotated[tuple[str, ...], Meta(description="Recipes (names or YAML files) to include.")] = ()
    seed: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_SEED)] | None, Meta(description="Seed used by the flags; 0 by default.")
    ] = None


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe with its flags resolved; ``options`` are the command-line options that select it."""

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
    with contextlib.suppress(OSError):  # the name is too long
        if path.suffix in (".yaml", ".yml") and path.is_file():
            return path
    if path.suffix in (".yaml", ".yml"):
        near = nearest(path.name, [one.name for one in _files(path.parent)])
        hint = f"Did you mean {str(path.with_name(near))!r}?" if near else "Check the path."
        raise UnknownNameError(f"recipe file not found: {name!r}", hint)
    raise unknown("recipe", name, names())


def _files(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [*folder.glob("*.yaml"), *folder.glob("*.yml")]
    return []


def read_recipe(name: str) -> RecipeFile:
    """Return the contents of a recipe file. Raises UnknownNameError and ConfigError as load_recipe does."""
    return yamlfile.load(_locate(name), RecipeFile)


def _collect(
    name: str, recipe: RecipeFile, catalogue: Catalogue, devices: Collection[Device], seen: tuple[str, ...] = ()
) -> set[str]:
    path = _locate(name)
    if str(path) in seen:
        raise ConfigError(f"{path}: recipe extends itself", "Remove the cycle from `extends`.")
    ids = catalogue.standard(devices) if recipe.flags == "all" else set()
    for number, flag_id in enumerate(recipe.flags if recipe.flags != "all" else ()):
        try:
            ids.add(_applicable_id(catalogue.get(flag_id)))
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
    return type(error)(f"{yamlfile.location(path, where)}: {error.message}", error.hint)


def _applicable_id(flag: Flag) -> str:
    """Return the id of a flag. Raises UsageError for one that must be set by hand."""
    if flag.by_hand_only:
        raise UsageError(
            f"detaudit cannot set {flag.id!r}: it belongs in the script", f"Set it by hand: {flag.by_hand}"
        )
    return flag.id


def _check(flags: Sequence[Flag], name: str, recipe: RecipeFile) -> None:
    """Raise UsageError for a flag without its value, and for two that conflict, at the line of the recipe file."""
    for flag in flags:
        if flag.needs_value:
            error = UsageError(f"flag {flag.id!r} needs a value", f"Write {flag.id}={flag.parameter}.")
            raise _placed(error, name, recipe, (flag.id,))
    if (two := conflict(flags)) is not None:
        a, b = (flag.id for flag in two)
        error = UsageError(
            f"recipe {recipe.name!r}: flags {a!r} and {b!r} conflict",
            f"Remove one: --no-flag {a} or --no-flag {b}",
        )
        raise _placed(error, name, recipe, (b, a))


def _placed(error: UsageError, name: str, recipe: RecipeFile, flags: Sequence[str]) -> UsageError:
    """Return the error with the place of the first of these flags that the file itself has."""
    listed = [one.partition("=")[0] for one in recipe.flags] if recipe.flags != "all" else []
    number = next((listed.index(flag) for flag in flags if flag in listed), None)
    return error if number is None else _at(error, _locate(name), f".flags[{number}]")


def load_recipe(
    name: str,
    catalogue: Catalogue,
    *,
    seed: int | None = None,
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
    devices: Collection[Device] = DEVICES,
) -> Recipe:
    """Return the recipe ``name`` (built-in, or a YAML file) with flags added and removed.

    ``seed`` overrides the seed of the file. The flags that a flag requires are added too, unless they are removed.
    ``all`` means the standard flags for ``devices``; a flag that is named is applied whatever its devices.

    Raises UnknownNameError for an unknown recipe or flag, ConfigError for an invalid file, UsageError for flags that
    conflict, lack their value, or must be set by hand.
    """
    recipe = read_recipe(name)
    ids = _collect(name, recipe, catalogue, devices)
    add = {_applicable_id(catalogue.get(flag_id)) for flag_id in add}
    remove = {catalogue.get(flag_id).id for flag_id in remove}
    ids |= add
    while more := {needed for flag in catalogue.select(ids) for needed in flag.requires} - ids:
        ids |= more
    flags = catalogue.select(ids - remove)
    _check(flags, name, recipe)
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


# The JSON schema of recipe files, for editors and for programs that write recipes.


FILE = "recipe.schema.json"
"""Its name in configs/."""


def recipe_schema() -> dict[str, Any]:
    """Return the schema of RecipeFile, without references."""
    _, components = msgspec.json.schema_components([RecipeFile])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **components["RecipeFile"],
        "title": "detaudit recipe",
        "description": "A named set of flags, with a seed.",
    }


def text() -> str:
    """Return the text of the schema file."""
    return json.dumps(recipe_schema(), indent=2) + "\n"
