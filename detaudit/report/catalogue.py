"""Recipes, flags, rules of edits, and the diagnosis of a machine in words."""

import json
from collections.abc import Callable, Iterator, Sequence

import click
import msgspec
from tabulate import tabulate

from detaudit.config.flags import DEVICES, Flag
from detaudit.config.recipes import Recipe, RecipeFile
from detaudit.model import Diagnosis
from detaudit.report.document import DESCRIPTION, FLAGS, Column, Table
from detaudit.report.markdown import prose
from detaudit.report.plain import line
from detaudit.report.terminal import drawn, filled
from detaudit.rules.rule import Rule

# Print the catalogue of recipes, flags and rules, or one of them, as text, Markdown or JSON.


ACTIONS = {
    "standard": "part of the recipe `all`",
    "fallback": "tried if the flags of `all` do not help or make the script fail",
    "opt-in": "only if you name it",
    "diagnostic": "fixes nothing, but reveals the mechanism",
}
"""The meaning of each action of a flag."""

_FLAG_COLUMNS = (
    Column("FLAG", left=True),
    DESCRIPTION,
    Column("DEVICES", left=True, drop=5),
    Column("USED", left=True, drop=7),
)
_RECIPE_COLUMNS = (Column("RECIPE", left=True), DESCRIPTION, FLAGS)
_RULE_COLUMNS = (Column("RULE", left=True), DESCRIPTION)

Known = tuple[RecipeFile, Recipe]
"""The file of a recipe, and the recipe with its flags resolved."""

Rows = Sequence[Sequence[str]]


def _plain(rows: Rows, columns: Sequence[Column], width: int | None) -> str:
    return drawn(Table(columns, rows), width)


def _markdown(rows: Rows, columns: Sequence[Column], width: int | None) -> str:
    titles = [column.title for column in columns]
    return tabulate([[f"`{row[0]}`", *row[1:]] for row in rows], titles, tablefmt="github", disable_numparse=True)


_TABLES: dict[str, Callable[[Rows, Sequence[Column], int | None], str]] = {"table": _plain, "markdown": _markdown}

FORMATS = ("table", "json", "markdown")
"""The values of ``--format``."""


def listing(
    recipes: Sequence[Known], flags: Sequence[Flag], rules: Sequence[Rule], format_: str, width: int | None = None
) -> str:
    """Return recipes, flags and rules as tables, or as JSON; ``width`` is that of the terminal, if there is one."""
    if format_ == "json":
        known = {"recipes": [_recipe_record(known) for known in recipes], "flags": list(map(_record, flags))}
        return _json({**known, "rules": list(map(_rule_record, rules))})
    table = _TABLES[format_]
    parts = [table([_recipe_row(known) for known in recipes], _RECIPE_COLUMNS, width)] if recipes else []
    parts += [table([_flag_row(flag) for flag in flags], _FLAG_COLUMNS, width)] if flags else ["no matching flags"]
    parts += [table([[rule.name, rule.title] for rule in rules], _RULE_COLUMNS, width)] if rules else []
    if format_ == "table" and flags:
        parts.append("\n".join(filled(f"{action}: {meaning}", width) for action, meaning in ACTIONS.items()))
        parts.append("Run `detaudit recipes show ID` for details.")
    return "\n\n".join(parts) + "\n"


def _flag_row(flag: Flag) -> list[str]:
    return [flag.id, flag.title, _devices(flag), flag.action]


def _devices(flag: Flag) -> str:
    return "all" if flag.devices == DEVICES else ", ".join(flag.devices)


def _recipe_row(known: Known) -> list[str]:
    file, recipe = known
    return [file.name, file.title, str(len(recipe.flags))]


def one_recipe(known: Known, format_: str, width: int | None = None) -> str:
    """Return a recipe with a table of its flags; see listing."""
    if format_ == "json":
        return _json(_recipe_record(known))
    file, recipe = known
    name, *texts = (line(text) for text in (file.name, file.title, ", ".join(file.extends)))
    title, extends = map(prose, texts) if format_ == "markdown" else texts
    heading = f"## {prose(name)}" if format_ == "markdown" else click.style(name, bold=True)
    parts = [heading, filled(title, width)] if title else [heading]
    parts += [filled(f"Extends: {extends}", width)] if extends else []
    parts += [f"Seed: {recipe.seed}"]
    rows = [_flag_row(flag) for flag in recipe.flags]
    parts += [_TABLES[format_](rows, _FLAG_COLUMNS, width)] if rows else []
    return "\n\n".join(parts) + "\n"


def one_flag(flag: Flag, recipes: Sequence[str], format_: str, width: int | None = None) -> str:
    """Return everything in the catalogue about a flag.

    ``recipes`` are the names of the recipes that include it; see listing for ``width``.
    """
    if format_ == "json":
        return _json({**_record(flag), "recipes": list(recipes)})
    facts = [(name, value) for name, value in _facts(flag, recipes) if value]
    if format_ == "markdown":
        lines = [f"- {name}: `{value}`" if name in _CODE else f"- {name}: {value}" for name, value in facts]
        return "\n".join([f"## {flag.id}", "", flag.title, "", *lines]) + "\n"
    longest = max(len(name) for name, _ in facts)
    lines = [filled(value, width, f"  {name:<{longest}}  ", " " * (longest + 4)) for name, value in facts]
    return "\n".join([click.style(flag.id, bold=True), filled(flag.title, width), "", *lines]) + "\n"


def one_rule(rule: Rule, format_: str, width: int | None = None) -> str:
    """Return the page of a rule of edits: why, an example before and after it, and what it never does."""
    if format_ == "json":
        return _json(_rule_record(rule))
    name, title, examples = click.style(rule.name, bold=True), rule.title, (rule.before, rule.after)
    if format_ == "markdown":
        name, (before, after) = f"## {rule.name}", (f"```python\n{text.rstrip()}\n```" for text in examples)
    else:
        before, after = ("\n".join(f"    {one}".rstrip() for one in text.splitlines()) for text in examples)
    why, never = filled(rule.message, width), filled(rule.never, width)
    return "\n\n".join([name, filled(f"{title}.", width), why, "Before:", before, "After:", after, never]) + "\n"


_CODE = ("variables", "calls", "sets", "by hand")


def _facts(flag: Flag, recipes: Sequence[str]) -> list[tuple[str, str]]:
    versions = [f"since {flag.since}"] * bool(flag.since) + [f"needed until {flag.until}"] * bool(flag.until)
    return [
        ("framework", flag.framework),
        ("devices", _devices(flag)),
        ("versions", ", ".join(versions)),
        ("used", f"{flag.action} ({ACTIONS[flag.action]})"),
        ("applied", "by hand only" if flag.by_hand_only else flag.applied_when),
        ("variables", " ".join(f"{name}={value}" for name, value in flag.env.items())),
        ("calls", "; ".join(_call(name, arguments) for name, arguments in flag.call.items())),
        ("sets", "; ".join(f"{name} = {value!r}" for name, value in flag.set.items())),
        ("changes", flag.patch or flag.launcher),
        ("reveals" if flag.action == "diagnostic" else "fixes", ", ".join(flag.causes)),
        ("cost", flag.cost),
        ("note", flag.note),
        ("requires", ", ".join(flag.requires)),
        ("conflicts", ", ".join(flag.conflicts)),
        ("alternatives", ", ".join(flag.alternatives)),
        ("in recipes", ", ".join(recipes)),
        ("by hand", flag.by_hand),
        ("source", flag.source),
    ]


def _call(name: str, arguments: Sequence[object]) -> str:
    keywords = arguments[-1] if arguments and isinstance(arguments[-1], dict) else {}
    values = [str(a) if a == "SEED" else repr(a) for a in (arguments[:-1] if keywords else arguments)]
    return f"{name}({', '.join(values + [f'{key}={value!r}' for key, value in keywords.items()])})"


def _record(flag: Flag) -> dict[str, object]:
    record: dict[str, object] = msgspec.to_builtins(flag)
    return record


def _rule_record(rule: Rule) -> dict[str, object]:
    texts = {"message": rule.message, "before": rule.before, "after": rule.after, "never": rule.never}
    return {"name": rule.name, "title": rule.title, **texts, "kinds": sorted(rule.kinds)}


def _recipe_record(known: Known) -> dict[str, object]:
    file, recipe = known
    flags = [flag.id for flag in recipe.flags]
    return {"name": file.name, "title": file.title, "extends": list(file.extends), "seed": recipe.seed, "flags": flags}


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


# The diagnosis of a machine, for a terminal or as JSON.


DOCTOR_FORMATS = ("table", "json")


def render(diagnosis: Diagnosis, format_: str, width: int | None = None) -> str:
    """Return a diagnosis in one of FORMATS; ``width`` is that of the terminal, if there is one."""
    if format_ == "json":
        return msgspec.json.format(msgspec.json.encode(diagnosis), indent=2).decode() + "\n"
    return "\n".join(_lines(diagnosis, width)) + "\n"


def _lines(diagnosis: Diagnosis, width: int | None) -> Iterator[str]:
    yield filled("Expect bit-identical results only between environments where all of this matches:", width, "", "")
    yield ""
    longest = max(map(len, diagnosis.relevant), default=0)
    for name, value in diagnosis.relevant.items():
        yield filled(line(value), width, f"{line(name):<{longest}}  ", " " * (longest + 2)).rstrip()
    yield ""
    yield click.style("Risks on this machine:" if diagnosis.risks else "No risks found on this machine.", bold=True)
    for risk in diagnosis.risks:
        yield ""
        yield filled(line(risk.text()), width, "- ", "  ")
        yield filled(line(risk.fix()), width, "    ", "    ")
    if diagnosis.risks:
        yield ""
        yield filled("Run `detaudit run train.py` to see whether they affect your training.", width, "", "")
