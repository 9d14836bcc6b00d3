"""``detaudit recipes``: list the recipes and flags, or explain one of them."""

import shutil
import sys

import click

from detaudit.cli.options import format_option
from detaudit.recipe import machine
from detaudit.recipe.flags import DEVICES, FRAMEWORKS, Catalogue, load_catalogue
from detaudit.recipe.recipes import load_recipe, names, read_recipe
from detaudit.report import catalogue as show


@click.group(invoke_without_command=True)
@click.option("--framework", type=click.Choice(FRAMEWORKS),
              help="Show only this framework's flags, and recipes that use them.")  # fmt: skip
@click.option("--device", type=click.Choice(DEVICES),
              help="Show only flags that matter on this device, and recipes that use them.")  # fmt: skip
@format_option(show.FORMATS)
@click.pass_context
def command(ctx: click.Context, framework: str | None, device: str | None, format_: str) -> None:
    """List the recipes, and the flags that they are made of."""
    if ctx.invoked_subcommand is not None:
        return
    catalogue = load_catalogue()
    flags = [flag for flag in catalogue if framework in (None, flag.framework)]
    flags = [flag for flag in flags if device is None or device in flag.devices]
    known = [_known(name, catalogue) for name in names()]
    if framework or device:
        known = [(file, recipe) for file, recipe in known if any(flag in flags for flag in recipe.flags)]
    click.echo(show.listing(known, flags, format_, _width()), nl=False)


@command.command("show")
@click.argument("name", metavar="ID")
@format_option(show.FORMATS)
def show_one(name: str, format_: str) -> None:
    """Explain one flag or recipe."""
    catalogue = load_catalogue()
    if name in names() or name.endswith((".yaml", ".yml")):
        text = show.one_recipe(_known(name, catalogue), format_, _width())
    else:
        flag = catalogue.get(name, *names())
        recipes = [recipe for recipe in names() if flag in load_recipe(recipe, catalogue).flags]
        text = show.one_flag(flag, recipes, format_, _width())
    click.echo(text, nl=False)


def _known(name: str, catalogue: Catalogue) -> show.Known:
    """Return a recipe as it is applied on this machine."""
    return read_recipe(name), load_recipe(name, catalogue, devices=machine.devices())


def _width() -> int | None:
    """Return the width of the terminal, None if stdout is not one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
