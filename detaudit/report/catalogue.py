"""The catalogue for people and programs: lists of recipes and flags, and all about one of them."""

import json
from collections.abc import Callable, Iterable, Sequence

import click
import msgspec
from tabulate import tabulate

from detaudit.recipe.flags import Flag
from detaudit.recipe.recipes import Recipe, RecipeFile

ACTIONS = {
    "auto": "part of the recipe `all`",
    "fallback": "for where those of `all` do not help, or fail",
    "advise": "where it is asked for by name",
    "diagnose": "mends nothing, but names a mechanism",
}
"""What each action of a flag means."""

_FLAG_HEADERS = ("FLAG", "WHAT IT DOES", "DEVICES", "ACTION")
_RECIPE_HEADERS = ("RECIPE", "WHAT IT HOLDS STILL", "FLAGS")

Known = tuple[RecipeFile, Recipe]
"""A recipe as its file has it, and as it is applied."""

Rows = Iterable[Sequence[str]]


def _plain(rows: Rows, headers: Sequence[str]) -> str:
    return tabulate(rows, headers, tablefmt="simple", disable_numparse=True)


def _markdown(rows: Rows, headers: Sequence[str]) -> str:
    return tabulate([[f"`{row[0]}`", *row[1:]] for row in rows], headers, tablefmt="github", disable_numparse=True)


_TABLES: dict[str, Callable[[Rows, Sequence[str]], str]] = {"table": _plain, "markdown": _markdown}

FORMATS = ("table", "json", "markdown")
"""The words of ``--format``."""


def listing(recipes: Sequence[Known], flags: Sequence[Flag], format_: str) -> str:
    """Return recipes and flags as two tables, or as JSON."""
    if format_ == "json":
        return _json({"recipes": [_recipe_record(known) for known in recipes], "flags": list(map(_record, flags))})
    table = _TABLES[format_]
    parts = [table([_recipe_row(known) for known in recipes], _RECIPE_HEADERS)] if recipes else []
    parts += [table([_flag_row(flag) for flag in flags], _FLAG_HEADERS)] if flags else ["no flag is for that"]
    if format_ == "table":
        parts.append("\n".join(f"{action}: {meaning}" for action, meaning in ACTIONS.items()))
        parts.append("`detaudit recipes show ID` tells all about one of them.")
    return "\n\n".join(parts) + "\n"


def _flag_row(flag: Flag) -> list[str]:
    return [flag.id, flag.title, ", ".join(flag.devices), flag.action]


def _recipe_row(known: Known) -> list[str]:
    file, recipe = known
    return [file.name, file.title, str(len(recipe.flags))]


def one_recipe(known: Known, format_: str) -> str:
    """Return a recipe with its flags and what each does."""
    if format_ == "json":
        return _json(_recipe_record(known))
    file, recipe = known
    heading = f"## {file.name}" if format_ == "markdown" else click.style(file.name, bold=True)
    facts = [f"{heading}\n\n{file.title}, seed {recipe.seed}"]
    facts += [f"It extends {', '.join(file.extends)}."] if file.extends else []
    facts += [_TABLES[format_]([_flag_row(flag) for flag in recipe.flags], _FLAG_HEADERS)] if recipe.flags else []
    return "\n\n".join(facts) + "\n"


def one_flag(flag: Flag, recipes: Sequence[str], format_: str) -> str:
    """Return all that the catalogue knows about a flag; ``recipes`` are the names of those that hold it."""
    if format_ == "json":
        return _json({**_record(flag), "recipes": list(recipes)})
    facts = [(name, value) for name, value in _facts(flag, recipes) if value]
    if format_ == "markdown":
        lines = [f"- {name}: `{value}`" if name in _CODE else f"- {name}: {value}" for name, value in facts]
        return "\n".join([f"## {flag.id}", "", flag.title, "", *lines]) + "\n"
    width = max(len(name) for name, _ in facts)
    lines = [f"  {name:<{width}}  {value}" for name, value in facts]
    return "\n".join([click.style(flag.id, bold=True), flag.title, "", *lines]) + "\n"


_CODE = ("variables", "calls", "sets", "in your script")


def _facts(flag: Flag, recipes: Sequence[str]) -> list[tuple[str, str]]:
    versions = [f"since {flag.since}"] * bool(flag.since) + [f"needed until {flag.until}"] * bool(flag.until)
    times = {"before-start": "before Python starts", "after-import": f"after the import of {flag.imported}"}
    return [
        ("framework", flag.framework),
        ("devices", ", ".join(flag.devices)),
        ("versions", ", ".join(versions)),
        ("action", f"{flag.action}: {ACTIONS[flag.action]}"),
        ("applied", "by you: detaudit cannot" if flag.is_advice else times[flag.when]),
        ("variables", " ".join(f"{name}={value}" for name, value in flag.env.items())),
        ("calls", "; ".join(_call(name, arguments) for name, arguments in flag.call.items())),
        ("sets", "; ".join(f"{name} = {value!r}" for name, value in flag.set.items())),
        ("changes", flag.patch or flag.launcher),
        ("can mend", ", ".join(flag.causes)),
        ("cost", flag.cost),
        ("note", flag.note),
        ("requires", ", ".join(flag.requires)),
        ("conflicts", ", ".join(flag.conflicts)),
        ("or instead", ", ".join(flag.instead)),
        ("in recipes", ", ".join(recipes)),
        ("in your script", flag.in_script),
        ("source", flag.source),
    ]


def _call(name: str, arguments: Sequence[object]) -> str:
    keywords = arguments[-1] if arguments and isinstance(arguments[-1], dict) else {}
    words = [str(a) if a == "SEED" else repr(a) for a in (arguments[:-1] if keywords else arguments)]
    return f"{name}({', '.join(words + [f'{key}={value!r}' for key, value in keywords.items()])})"


def _record(flag: Flag) -> dict[str, object]:
    record: dict[str, object] = msgspec.to_builtins(flag)
    return record


def _recipe_record(known: Known) -> dict[str, object]:
    file, recipe = known
    flags = [flag.id for flag in recipe.flags]
    return {"name": file.name, "title": file.title, "extends": list(file.extends), "seed": recipe.seed, "flags": flags}


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
