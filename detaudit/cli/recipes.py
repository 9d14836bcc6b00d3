"""``detaudit recipes``: what can be held still, and what each flag does."""

import click

from detaudit.recipe.flags import DEVICES, FRAMEWORKS, load_catalogue
from detaudit.recipe.recipes import load_recipe, names, read_recipe
from detaudit.report import catalogue as show


def _format() -> click.Option:
    return click.Option(["--format", "format_"], type=click.Choice(show.FORMATS), default="table", show_default=True)


@click.group(invoke_without_command=True, params=[_format()])
@click.option("--framework", type=click.Choice(FRAMEWORKS), help="Only flags of this, and recipes with some.")
@click.option("--device", type=click.Choice(DEVICES), help="Only flags that do something there.")
@click.pass_context
def command(ctx: click.Context, framework: str | None, device: str | None, format_: str) -> None:
    """List the recipes and the flags that they are made of."""
    if ctx.invoked_subcommand is not None:
        return
    catalogue = load_catalogue()
    flags = [flag for flag in catalogue if framework in (None, flag.framework)]
    flags = [flag for flag in flags if device is None or device in flag.devices]
    known = [(read_recipe(name), load_recipe(name, catalogue)) for name in names()]
    if framework or device:
        known = [(file, recipe) for file, recipe in known if any(flag in flags for flag in recipe.flags)]
    click.echo(show.listing(known, flags, format_), nl=False)


@command.command("show", params=[_format()])
@click.argument("name", metavar="ID")
def show_one(name: str, format_: str) -> None:
    """Tell all about one flag, or what the flags of a recipe do."""
    catalogue = load_catalogue()
    if name in names() or name.endswith((".yaml", ".yml")):
        text = show.one_recipe((read_recipe(name), load_recipe(name, catalogue)), format_)
    else:
        flag = catalogue.get(name, *names())
        holders = [recipe for recipe in names() if flag in load_recipe(recipe, catalogue).flags]
        text = show.one_flag(flag, holders, format_)
    click.echo(text, nl=False)
