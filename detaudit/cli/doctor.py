"""``detaudit doctor``: show what affects determinism on this machine."""

import shutil
from pathlib import Path

import click

from detaudit.auditor.doctor import diagnose
from detaudit.cli.options import format_option, python_option
from detaudit.launch.interpreter import training_python
from detaudit.recipe import machine
from detaudit.recipe.flags import load_catalogue
from detaudit.report import doctor


@click.command()
@python_option
@format_option(doctor.FORMATS)
def command(python: str | None, format_: str) -> None:
    """Show what affects determinism on this machine: hardware, versions, settings and risks."""
    interpreter = python or training_python(Path.cwd())
    found = diagnose(shutil.which(interpreter) or interpreter, load_catalogue(), machine.devices())
    click.echo(doctor.render(found, format_), nl=False)
