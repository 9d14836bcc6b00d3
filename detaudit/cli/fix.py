"""``detaudit fix``: find the edits that make a training deterministic, prove them, and apply them."""

from pathlib import Path
from typing import Any

import click

from detaudit import store
from detaudit.cli import completion
from detaudit.cli.execute import Shown, audit
from detaudit.cli.options import (
    RUNS,
    STAGES_ALONE,
    TargetCommand,
    declared,
    hide_options,
    option,
    refuse_options,
    run_options,
    target_options,
)
from detaudit.cli.settings import settings_of
from detaudit.config import choice
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.errors import UsageError
from detaudit.fix.fixer import DIFF, Fixer, FixRequest
from detaudit.launch.local import LocalLauncher

_CHANGES = "Changes"
_EXAMPLES = (
    ("which edits make it deterministic?", "detaudit fix train.py"),
    ("and make them", "detaudit fix train.py --apply"),
    ("change only the files of one folder", "detaudit fix train.py --only data"),
    ("write the diff to a file", "detaudit fix train.py --diff fix.diff"),
)


@click.command(cls=TargetCommand, options_metavar="[OPTIONS]", examples=_EXAMPLES)
@target_options
@option("--runs", group=RUNS, default=5, show_default=True, type=click.IntRange(2), metavar="N",
        help="Number of runs that must match with all changes.")  # fmt: skip
@option("--apply", group=_CHANGES, is_flag=True, help="Change the files, all or none, once the changes are proven.")
@option("--diff", "diff_file", group=_CHANGES, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
        help="Write the changes to this file too, as a unified diff.")  # fmt: skip
@option("--only", group=_CHANGES, multiple=True, metavar="PATH", shell_complete=completion.files,
        help="Change only this file, or the files in this folder.")  # fmt: skip
@run_options
@declared("evidence")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    format_: str,
    quiet: bool,
    verbose: bool,
    after_dashes: tuple[str, ...],
    runs: int,
    apply: bool,
    diff_file: Path | None,
    only: tuple[str, ...],
    **options: Any,
) -> int:
    """Find the edits that make a training deterministic, and prove them.

    Traces the first difference, tries in a copy what may fix it, and goes on with the next until runs match. What is
    not needed is left out again. Nothing is advised that was not run, and no file is changed without --apply.
    """
    refuse_options(ctx, STAGES_ALONE)
    catalogue = load_catalogue()
    recipe = load_recipe("none", catalogue, devices=choice.devices(), seed=0, add=(), remove=())
    settings = settings_of(after_dashes, (recipe,), runs, **options)
    request = FixRequest(settings, recipe, catalogue, tuple(map(_from_here, only)), apply)
    status = audit(settings, lambda observer: Fixer(request, LocalLauncher(), observer), Shown(format_, quiet, verbose))
    saved = settings.out / DIFF
    if diff_file is not None and saved.exists():
        store.write(diff_file, saved.read_bytes(), instead="another --diff")
    return status


hide_options(command, STAGES_ALONE)


def _from_here(path: str) -> str:
    """Return a path as seen from the working directory. Raises UsageError for one that does not exist."""
    if not Path(path).exists():
        raise UsageError(f"--only {path} does not exist", "Name a file or a folder of the project.")
    resolved = Path(path).resolve()
    return str(resolved.relative_to(Path.cwd())) if resolved.is_relative_to(Path.cwd()) else str(resolved)
