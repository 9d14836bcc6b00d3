"""``detaudit trace``: find the line where two runs diverge."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from detaudit.auditor.trace.tracer import Tracer, TraceRequest
from detaudit.cli.execute import audit
from detaudit.cli.options import TargetCommand, flag_options, run_options, target_options, vary_option
from detaudit.cli.settings import settings_of
from detaudit.errors import UsageError
from detaudit.launch.local import LocalLauncher
from detaudit.recipe import machine
from detaudit.recipe.flags import load_catalogue
from detaudit.recipe.recipes import load_recipe

_ON_CPU = "torch-on-cpu"
_UNSUPPORTED = ("stages", "loss_pattern", "artifacts_")
"""Options of a run that are hidden here, and refused with a hint: a trace compares every stage, and nothing else."""


@click.command(cls=TargetCommand, options_metavar="[OPTIONS]")
@target_options
@click.option("--runs", default=5, show_default=True, type=click.IntRange(2), metavar="N",
              help="Maximum number of runs at each tracing level until two differ.")  # fmt: skip
@click.option("--recipe", metavar="NAME|FILE", default="none", show_default=True,
              help="Apply this recipe, and trace the difference that remains.")  # fmt: skip
@flag_options("the recipe")
@click.option("--on-cpu", metavar="MODULE",
              help="Run this module on the CPU, to test whether one of its GPU kernels is the cause.")  # fmt: skip
@click.option("--from-step", type=click.IntRange(0), metavar="N",
              help="First step to record. [default: the first at which two runs differ]")  # fmt: skip
@click.option("--window", default=1, show_default=True, type=click.IntRange(1), metavar="K",
              help="Number of steps to record.")  # fmt: skip
@click.option("--dump", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.npz",
              help="Save both versions of the differing tensor, as `a` and `b`.")  # fmt: skip
@vary_option
@run_options
@click.pass_context
def command(ctx: click.Context, /, format_: str, quiet: bool, **options: Any) -> int:
    """Find the line where two runs diverge: step, operation and cause.

    Runs the script until two runs differ, then records every operation around that step in two more runs and names
    the first one with identical inputs but different output. If its inputs already differ, it names the line that
    introduced the difference.
    """
    if any(ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in _UNSUPPORTED):
        raise UsageError(
            "detaudit trace does not support --stages, --loss-pattern or --artifact",
            "Remove them, or use `detaudit run`.",
        )
    request = _request(**options)
    settings = request.settings
    return audit(settings, lambda observer: Tracer(request, LocalLauncher(), observer), format_=format_, quiet=quiet)


for option in command.params:
    if isinstance(option, click.Option) and option.name in _UNSUPPORTED:
        option.hidden = True


def _request(after_dashes: tuple[str, ...], recipe: str, runs: int, **options: Any) -> TraceRequest:
    catalogue = load_catalogue()
    on_cpu = [f"{_ON_CPU}={options['on_cpu']}"] if options["on_cpu"] else []
    loaded = load_recipe(
        recipe,
        catalogue,
        devices=machine.devices(),
        seed=options["seed"],
        add=[*options["flags"], *on_cpu],
        remove=options["no_flags"],
    )
    settings = settings_of(after_dashes, (loaded,), runs, **options)
    settings = replace(settings, stepwise=not options["vary"])
    dump = options["dump"].resolve() if options["dump"] else None
    return TraceRequest(settings, loaded, catalogue, options["from_step"], options["window"], dump)
