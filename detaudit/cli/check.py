"""``detaudit check``: whether the trainings that a project has named are still what they were."""

import os
import secrets
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from detaudit.auditor import advice, store
from detaudit.auditor.baseline.lockfile import LOCK
from detaudit.auditor.check import Asked, Checker
from detaudit.auditor.evidence import artifacts, printed
from detaudit.auditor.runs.observer import Observer
from detaudit.cli.execute import carry_out
from detaudit.errors import UsageError
from detaudit.launch.local import LocalLauncher
from detaudit.launch.plan import Settings
from detaudit.launch.target import Target, resolve_target
from detaudit.model import Check, to_json
from detaudit.recipe import machine, project
from detaudit.recipe.flags import Catalogue, load_catalogue
from detaudit.recipe.project import NamedAudit
from detaudit.recipe.recipes import Recipe, load_recipe
from detaudit.report import FORMATS


@click.command(options_metavar="[OPTIONS]")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--update", is_flag=True, help="Write the baselines from these runs, and say what changed in them.")
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where the audits are written down. [default: detaudit.yaml, or [tool.detaudit] in pyproject.toml]",
)
@click.option(
    "--lock",
    type=click.Path(dir_okay=False, path_type=Path),
    default=LOCK,
    show_default=True,
    help="Where the baselines are kept; to be committed.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where results are kept. [default: .detaudit/<time>-<id>]",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(list(FORMATS)),
    default="table",
    show_default=True,
    help="How the result is printed.",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")  # fmt: skip
def command(names: tuple[str, ...], update: bool, lock: Path, format_: str, quiet: bool, **options: Any) -> int:
    """Run the audits that this project has named, or those with a NAME, and compare them with their baselines.

    Three gates: repeatable (the runs are equal), same as baseline, same after resume. Exit status: 0 all passed, 1 one
    failed, 125 one could not be judged.
    """
    mark = secrets.token_hex(4)
    out = (options["out"] or store.new_folder(mark)).resolve()
    audits = project.select(project.read(options["config"] or project.find(Path.cwd())), names)
    catalogue = load_catalogue()
    asked = [_asked(name, audit, catalogue, out, mark) for name, audit in audits.items()]

    def story(observer: Observer) -> Checker:
        return Checker(asked, ("detaudit", *sys.argv[1:]), out, lock.resolve(), update, LocalLauncher(), observer)

    def save(check: Check) -> None:
        store.write(out / store.CHECK, to_json(check))

    return carry_out(mark, story, save, format_=format_, quiet=quiet)


def _asked(name: str, audit: NamedAudit, catalogue: Catalogue, out: Path, mark: str) -> Asked:
    """Return an audit as it is to be carried out. An error names the audit that it is in."""
    try:
        recipe = load_recipe(
            audit.recipe,
            catalogue,
            devices=machine.devices(),
            seed=audit.seed,
            add=audit.flags,
            remove=audit.no_flags,
        )
        settings = _settings(audit, recipe, out / name, mark)
        alone = advice.command(settings, "--runs", str(audit.runs), *recipe.options)
        return Asked(
            name=name,
            audit=audit,
            settings=replace(settings, command=tuple(shlex.split(alone))),
            resume=_target(audit.resume, audit.python) if audit.resume else None,
            stop=_target(audit.stop, audit.python) if audit.stop else None,
        )
    except UsageError as error:
        raise type(error)(f"the audit {name!r}: {error.message}", error.cure) from error


def _settings(audit: NamedAudit, recipe: Recipe, out: Path, mark: str) -> Settings:
    return Settings(
        target=_target(audit.command, audit.python),
        recipes=(recipe,),
        runs=audit.runs,
        out=out,
        mark=mark,
        cwd=Path(os.getcwd()),
        timeout=audit.timeout,
        isolate=audit.isolate,
        loss_pattern=printed.compiled(audit.loss_pattern) if audit.loss_pattern is not None else None,
        artifacts=artifacts.check(audit.artifacts),
        env=audit.env,
    )


def _target(command: project.Command, python: str | None) -> Target:
    words, after_dashes, module = project.words(command)
    return resolve_target(words, after_dashes, module, python)
