"""``detaudit run``: whether a training is deterministic."""

import os
import secrets
import signal
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from detaudit import wire
from detaudit.auditor import artifacts, stdout, store
from detaudit.auditor.audit import Auditor
from detaudit.cli.progress import ProgressLine
from detaudit.errors import ExitCode, StorageError, UsageError
from detaudit.launch.local import LocalLauncher
from detaudit.launch.plan import Settings
from detaudit.launch.processes import Reaper
from detaudit.launch.target import resolve_target
from detaudit.model import Audit, Verdict
from detaudit.recipe.flags import load_catalogue, unknown
from detaudit.recipe.recipes import MAX_SEED, load_recipe
from detaudit.report import FORMATS, render

EXIT_CODES = {
    Verdict.DETERMINISTIC: ExitCode.DETERMINISTIC,
    Verdict.NONDETERMINISTIC: ExitCode.NONDETERMINISTIC,
    Verdict.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
}


def _stages(ctx: click.Context, option: click.Parameter, value: str) -> tuple[str, ...]:
    words = wire.STAGES if value == "all" else tuple(filter(None, (word.strip() for word in value.split(","))))
    wrong = [word for word in words if word not in wire.STAGES]
    if wrong or not words:
        raise unknown("stage", ", ".join(wrong), (*wire.STAGES, "all"))
    return tuple(stage for stage in wire.STAGES if stage in words)


class _RunCommand(click.Command):
    """Keeps what follows ``--`` apart from the arguments before it, which click by itself would join."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args, ctx.meta["after_dashes"] = args[:at], tuple(args[at + 1 :])
        return super().parse_args(ctx, args)


@click.command(cls=_RunCommand, options_metavar="[OPTIONS]")
@click.argument("words", nargs=-1, metavar="SCRIPT [-- ARGS]... | -m MODULE [-- ARGS]... | -- COMMAND...")
@click.option("-m", "module", default="", metavar="MODULE", help="Run a module, as python -m does.")
@click.option("--runs", default=5, show_default=True, type=click.IntRange(1), help="How often each recipe is run.")
@click.option("--recipe", "recipes", multiple=True, metavar="NAME|FILE",
              help="What to hold still: none, seeds, all, or a YAML file; repeatable. [default: none]")  # fmt: skip
@click.option("--flag", "flags", multiple=True, metavar="ID[=VALUE]",
              help="Add one flag to every recipe.")  # fmt: skip
@click.option("--no-flag", "no_flags", multiple=True, metavar="ID", help="Take one flag out of every recipe.")
@click.option("--seed", type=click.IntRange(0, MAX_SEED), help="The seed that recipes set. [default: 0]")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="S", help="End a run after S seconds.")
@click.option("--fail-fast", is_flag=True, help="Stop a recipe at the first two runs that differ.")
@click.option("--stages", default=",".join(wire.DEFAULT_STAGES), show_default=True, callback=_stages,
              help="What is recorded of each step, or `all`, which adds backward.")  # fmt: skip
@click.option("--loss-pattern", metavar="REGEX",
              help="Take the loss from stdout: the group `loss`, or the first one; `step` counts.")  # fmt: skip
@click.option("--artifact", "artifacts_", multiple=True, metavar="PATH",
              help="Compare a file that the script writes; repeatable, globs allowed.")  # fmt: skip
@click.option("--isolate", is_flag=True, help="Give each run its own copy of the repository, at one path.")
@click.option("--isolate-root", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="Copy this folder instead; implies --isolate.")  # fmt: skip
@click.option("--python", metavar="EXE", help="The Python of your training, if it is not detaudit's own.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
              help="Where results are kept. [default: .detaudit/<time>-<id>]")  # fmt: skip
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), default="table", show_default=True,
              help="How the result is printed.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@click.pass_context
def command(ctx: click.Context, /, format_: str, quiet: bool, **options: Any) -> int:
    """Tell whether a training script is deterministic.

    Runs it several times in cold processes, unmodified, and compares the weights and the loss at every step,
    bit for bit.
    """
    settings = _settings(ctx.meta.get("after_dashes", ()), **options)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _interrupt)
    with ProgressLine(quiet or not sys.stderr.isatty()) as progress, Reaper(settings.mark):
        auditor = Auditor(settings, LocalLauncher(), progress)
        try:
            audit = auditor.run()
        except KeyboardInterrupt:
            audit = auditor.result(interrupted=True)
    _save_last(settings, audit)
    click.echo(render(audit, format_), nl=False)
    return ExitCode.INTERRUPTED if audit.interrupted else EXIT_CODES[audit.verdict]


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _save_last(settings: Settings, audit: Audit) -> None:
    """Save the whole audit once more; where that fails, the result is still printed."""
    try:
        store.save(settings.out, audit)
    except StorageError as error:
        click.echo(f"{click.style('error:', fg='red')} {error.message}. {error.cure}", err=True)


def _settings(after_dashes: tuple[str, ...], **options: Any) -> Settings:
    target = resolve_target(options["words"], after_dashes, options["module"], options["python"])
    catalogue = load_catalogue()
    recipes = [
        load_recipe(name, catalogue, seed=options["seed"], add=options["flags"], remove=options["no_flags"])
        for name in dict.fromkeys(options["recipes"] or ["none"])
    ]
    names = [recipe.name for recipe in recipes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise UsageError(f"two of the recipes are called {twice!r}", "Give one of them another name.")
    mark = secrets.token_hex(4)
    out = options["out"] or Path(".detaudit", f"{datetime.now():%Y%m%d-%H%M%S}-{mark}")
    return Settings(
        target=target,
        recipes=tuple(recipes),
        runs=options["runs"],
        out=out.resolve(),
        mark=mark,
        cwd=Path(os.getcwd()),
        command=("detaudit", *sys.argv[1:]),
        timeout=options["timeout"],
        fail_fast=options["fail_fast"],
        isolate=options["isolate"] or options["isolate_root"] is not None,
        isolate_root=options["isolate_root"],
        stages=options["stages"],
        loss_pattern=stdout.compiled(options["loss_pattern"]) if options["loss_pattern"] is not None else None,
        artifacts=artifacts.check(options["artifacts_"]),
    )
