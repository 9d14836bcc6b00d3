"""``detaudit recipes``: list the recipes, the flags and the rules of edits, or explain one of them."""

import click

from detaudit.cli import completion
from detaudit.cli.help import DEFAULT_GROUP, Command, Group
from detaudit.cli.options import format_option, option
from detaudit.cli.screen import width
from detaudit.config import choice
from detaudit.config.flags import DEVICES, FRAMEWORKS, Catalogue, load_catalogue
from detaudit.config.recipes import load_recipe, names, read_recipe
from detaudit.report import catalogue as show
from detaudit.rules import TABLE

_EXAMPLES = (
    ("all recipes, flags and rules", "detaudit recipes"),
    ("those for TensorFlow", "detaudit recipes --framework tensorflow"),
    ("what is in a recipe?", "detaudit recipes show all"),
    ("what does a flag do, and what does it cost?", "detaudit recipes show torch-deterministic-algorithms"),
    ("why does an edit of `fix` help?", "detaudit recipes show set-order"),
)
_SHOW_EXAMPLES = _EXAMPLES[2:]


@click.group(cls=Group, invoke_without_command=True, examples=_EXAMPLES)
@option("--framework", group=DEFAULT_GROUP, type=click.Choice(FRAMEWORKS), metavar="NAME",
        help=f"Show only this framework's flags, and recipes that use them: {', '.join(FRAMEWORKS)}.")  # fmt: skip
@option("--device", group=DEFAULT_GROUP, type=click.Choice(DEVICES), metavar="NAME",
        help="Show only flags that matter on this device, and recipes that use them: "
        f"{', '.join(DEVICES)}.")  # fmt: skip
@format_option(show.FORMATS)
@click.pass_context
def command(ctx: click.Context, framework: str | None, device: str | None, format_: str) -> None:
    """List the recipes, the flags that they are made of, and the rules of `detaudit fix`."""
    if ctx.invoked_subcommand is not None:
        return
    catalogue = load_catalogue()
    flags = [flag for flag in catalogue if framework in (None, flag.framework)]
    flags = [flag for flag in flags if device is None or device in flag.devices]
    known = [_known(name, catalogue) for name in names()]
    if framework or device:
        known = [(file, recipe) for file, recipe in known if any(flag in flags for flag in recipe.flags)]
    rules = () if framework or device else TABLE
    click.echo(show.listing(known, flags, rules, format_, width()), nl=False)


@command.command("show", cls=Command, examples=_SHOW_EXAMPLES)
@click.argument("name", metavar="ID", shell_complete=completion.pages)
@format_option(show.FORMATS)
def show_one(name: str, format_: str) -> None:
    """Explain one flag, recipe or rule."""
    catalogue, rule = load_catalogue(), next((one for one in TABLE if one.name == name), None)
    if name in names() or name.endswith((".yaml", ".yml")):
        text = show.one_recipe(_known(name, catalogue), format_, width())
    elif rule is not None:
        text = show.one_rule(rule, format_, width())
    else:
        flag = catalogue.get(name, *names(), *(one.name for one in TABLE))
        recipes = [recipe for recipe in names() if flag in load_recipe(recipe, catalogue).flags]
        text = show.one_flag(flag, recipes, format_, width())
    click.echo(text, nl=False)


def _known(name: str, catalogue: Catalogue) -> show.Known:
    """Return a recipe as it is applied on this machine."""
    return read_recipe(name), load_recipe(name, catalogue, devices=choice.devices())
