"""``detaudit doctor``: show what affects determinism on this machine."""

import shutil
from pathlib import Path

import click

from detaudit.cli.help import Command
from detaudit.cli.options import format_option, python_option
from detaudit.cli.screen import width
from detaudit.config import choice
from detaudit.config.flags import load_catalogue
from detaudit.doctor import diagnose
from detaudit.launch.target import training_python
from detaudit.report import catalogue

_EXAMPLES = (
    ("risks on this machine, before anything runs", "detaudit doctor"),
    ("with the packages of a different environment", "detaudit doctor --python .venv/bin/python"),
)


@click.command(cls=Command, examples=_EXAMPLES)
@python_option
@format_option(catalogue.DOCTOR_FORMATS)
def command(python: str | None, format_: str) -> None:
    """Show what affects determinism on this machine: hardware, versions, settings and risks."""
    interpreter = python or training_python(Path.cwd())
    diagnosis = diagnose(shutil.which(interpreter) or interpreter, load_catalogue(), choice.devices())
    click.echo(catalogue.render(diagnosis, format_, width()), nl=False)
