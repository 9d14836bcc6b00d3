"""``detaudit resume``: stop a training, resume it, and name what it lost."""

from dataclasses import replace
from typing import Any

import click

from detaudit.cli import completion
from detaudit.cli.execute import Shown, audit
from detaudit.cli.options import (
    COMPARISONS,
    FLAGS,
    RUNS,
    TargetCommand,
    flag_options,
    hide_options,
    option,
    refuse_options,
    run_options,
    target_options,
)
from detaudit.cli.settings import recipes_of, settings_of
from detaudit.config import choice, project
from detaudit.errors import UsageError
from detaudit.launch.local import LocalLauncher
from detaudit.launch.target import Target, resolve_target
from detaudit.resume import Resumer, ResumeRequest

_RESUME = "Stop and resume"
_EXAMPLES = (
    ("does it survive a stop?", 'detaudit resume train.py --resume "train.py --resume"'),
    (
        "one that stops early by itself",
        'detaudit resume train.py --stop "train.py --epochs 2" --resume "train.py --resume"',
    ),
    (
        "the script's own arguments follow --",
        'detaudit resume train.py --resume "train.py --lr 0.1 --resume" -- --lr 0.1',
    ),
)


@click.command(cls=TargetCommand, options_metavar="[OPTIONS]", examples=_EXAMPLES)
@target_options
@option("--resume", "resume", group=_RESUME, required=True, metavar="COMMAND",
        help="Command that resumes from what a stopped run left: a script with its arguments.")  # fmt: skip
@option("--stop", "stop", group=_RESUME, metavar="COMMAND",
        help="Command that stops early by itself. [default: SCRIPT, ended between two checkpoints, right after one, "
        "and before the first]")  # fmt: skip
@option("--runs", group=RUNS, default=2, show_default=True, type=click.IntRange(2), metavar="N",
        help="Number of uninterrupted runs, which must match.")  # fmt: skip
@option("--recipe", group=FLAGS, metavar="NAME|FILE", default="none", show_default=True,
        shell_complete=completion.recipes, help="Apply this recipe to every run.")  # fmt: skip
@flag_options("the recipe")
@run_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    format_: str,
    quiet: bool,
    verbose: bool,
    after_dashes: tuple[str, ...],
    runs: int,
    resume: str,
    stop: str | None,
    recipe: str,
    **options: Any,
) -> int:
    """Stop a training, resume it, and name what the resumed run lost.

    Each run works in a copy of the folder. A resumed run is aligned by step with an uninterrupted one; one run more
    shows what was held there: generators, data order, optimizer, scheduler, scaler, buffers, averages.

    Exit status: 0 all match, 1 one differs, 125 inconclusive.
    """
    refuse_options(ctx, COMPARISONS)
    settings = settings_of(after_dashes, recipes_of([recipe], options, choice.devices()), runs, **options)
    settings = replace(settings, isolate=True)
    python = options["python"]
    request = ResumeRequest(settings, _target(resume, python), _target(stop, python) if stop else None)
    return audit(settings, lambda observer: Resumer(request, LocalLauncher(), observer), Shown(format_, quiet, verbose))


hide_options(command, COMPARISONS)


def _target(text: str, python: str | None) -> Target:
    """Return the target of a command. Raises UsageError for one that runs nothing."""
    if not text.strip():
        raise UsageError("the command is empty", "Name a script with its arguments.")
    words, after_dashes, module = project.words(text)
    return resolve_target(words, after_dashes, module, python)
