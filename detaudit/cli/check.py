"""``detaudit check``: compare the audits of a project with their baselines."""

import os
import shlex
from dataclasses import replace
from pathlib import Path

import click

from detaudit.auditor import advice, store
from detaudit.auditor.baseline.lockfile import LOCK
from detaudit.auditor.check import Checker, CheckRequest
from detaudit.auditor.evidence import artifacts
from detaudit.auditor.runs.observer import Observer
from detaudit.cli.execute import execute
from detaudit.cli.options import format_option, out_option, quiet_option
from detaudit.cli.settings import command_line, loss_regex, new_results
from detaudit.errors import UsageError
from detaudit.launch.local import LocalLauncher
from detaudit.launch.plan import Settings
from detaudit.launch.target import Target, resolve_target
from detaudit.model import Check, to_json
from detaudit.recipe import machine, project
from detaudit.recipe.flags import Catalogue, load_catalogue
from detaudit.recipe.project import NamedAudit
from detaudit.recipe.recipes import Recipe, load_recipe

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(options_metavar="[OPTIONS]")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--update", is_flag=True, help="Write new baselines from these runs and list what changed.")
@click.option("--config", type=_FILE, metavar="FILE",
              help="File that defines the audits. [default: detaudit.yaml, or [tool.detaudit] in "
              "pyproject.toml]")  # fmt: skip
@click.option("--lock", type=_FILE, default=LOCK, show_default=True, help="Baseline file; commit it.")
@out_option
@format_option()
@quiet_option
def command(
    names: tuple[str, ...],
    update: bool,
    config: Path | None,
    lock: Path,
    out: Path | None,
    format_: str,
    quiet: bool,
) -> int:
    """Run this project's audits, or only those with a NAME, and compare them with their baselines.

    Gates: repeatable (all runs match), same as baseline, same after resume.

    Exit status: 0 all passed, 1 one failed, 125 inconclusive.
    """
    mark, folder = new_results(out)
    audits = project.select(project.read(config or project.find(Path.cwd())), names)
    catalogue = load_catalogue()
    requests = [_request(name, audit, catalogue, folder, mark) for name, audit in audits.items()]

    def make_job(observer: Observer) -> Checker:
        return Checker(requests, command_line(), folder, lock.resolve(), update, LocalLauncher(), observer)

    def save(check: Check) -> None:
        store.write(folder / store.CHECK, to_json(check))

    return execute(mark, make_job, save, format_=format_, quiet=quiet)


def _request(name: str, audit: NamedAudit, catalogue: Catalogue, out: Path, mark: str) -> CheckRequest:
    """Return an audit of the project as the checker takes it. An error names the audit that it is in."""
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
        run = advice.command(settings, "--runs", str(audit.runs), *recipe.options)
        return CheckRequest(
            name=name,
            audit=audit,
            settings=replace(settings, command=tuple(shlex.split(run))),
            resume=_target(audit.resume, audit.python) if audit.resume else None,
            stop=_target(audit.stop, audit.python) if audit.stop else None,
        )
    except UsageError as error:
        raise type(error)(f"audit {name!r}: {error.message}", error.hint) from error


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
        loss_pattern=loss_regex(audit.loss_pattern),
        artifacts=artifacts.check(audit.artifacts),
        env=audit.env,
    )


def _target(command: project.Command, python: str | None) -> Target:
    words, after_dashes, module = project.words(command)
    return resolve_target(words, after_dashes, module, python)
