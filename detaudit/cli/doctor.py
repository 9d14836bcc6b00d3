"""``detaudit doctor``: what bears on determinism on this machine."""

import shutil
import sys

import click

from detaudit.auditor.doctor import diagnose
from detaudit.recipe import machine
from detaudit.recipe.flags import load_catalogue
from detaudit.report import doctor


@click.command()
@click.option("--python", metavar="EXE", default=sys.executable, help="The Python of your training.")
@click.option("--format", "format_", type=click.Choice(doctor.FORMATS), default="table", show_default=True)
def command(python: str, format_: str) -> None:
    """Tell what this machine means for the bits of a training: what it is, and what threatens them."""
    found = diagnose(shutil.which(python) or python, load_catalogue(), machine.devices())
    click.echo(doctor.render(found, format_), nl=False)
