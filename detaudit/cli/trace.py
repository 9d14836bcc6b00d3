"""``detaudit trace``: where the first difference enters."""

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from detaudit.auditor.trace.tracer import Asked, Tracer
from detaudit.cli.common import TargetCommand, run_options, settings_of, target_options
from detaudit.cli.execute import audit
from detaudit.errors import UsageError
from detaudit.launch.local import LocalLauncher
from detaudit.recipe import machine
from detaudit.recipe.flags import load_catalogue
from detaudit.recipe.recipes import load_recipe

_ON_CPU = "torch-on-cpu"
_REFUSED = ("stages", "loss_pattern", "artifacts_")
"""Options of a run that a trace has no use for; they are not offered, and refused with a reason."""


@click.command(cls=TargetCommand, options_metavar="[OPTIONS]")
@target_options
@click.option("--runs", default=5, show_default=True, type=click.IntRange(2),
              help="How often to run it at most, at each level, until two runs differ.")  # fmt: skip
@click.option("--recipe", metavar="NAME|FILE", default="none", show_default=True,
              help="Trace what is left under this recipe.")  # fmt: skip
@click.option("--flag", "flags", multiple=True, metavar="ID[=VALUE]", help="Add one flag to the recipe.")
@click.option("--no-flag", "no_flags", multiple=True, metavar="ID", help="Take one flag out of the recipe.")
@click.option("--on-cpu", metavar="MODULE", help="Run this module of the model on the CPU: is it a kernel of it?")
@click.option("--from-step", type=click.IntRange(0), metavar="N",
              help="Watch from this step on; without it, from the first at which two runs differ.")  # fmt: skip
@click.option("--window", default=1, show_default=True, type=click.IntRange(1), metavar="K",
              help="How many steps to watch.")  # fmt: skip
@click.option("--dump", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.npz",
              help="Keep both of the tensors that differ, as `a` and `b`.")  # fmt: skip
@run_options
@click.pass_context
def command(ctx: click.Context, /, format_: str, quiet: bool, **options: Any) -> int:
    """Find where the first difference between two runs enters: the step, the operation, the line, and why.

    Runs it until two runs differ, then watches every operation around that step in two more, and names the first whose
    inputs are equal, bit for bit, and whose output differs; where what came in differs, the line that brought it.
    """
    if any(ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in _REFUSED):
        raise UsageError(
            "a trace follows every stage that the recorder sees, not files or printed losses",
            "Leave --stages, --loss-pattern and --artifact out; see `detaudit run`.",
        )
    asked = _asked(ctx.meta.get("after_dashes", ()), **options)
    return audit(asked.settings, lambda watcher: Tracer(asked, LocalLauncher(), watcher), format_=format_, quiet=quiet)


for option in command.params:
    if isinstance(option, click.Option) and option.name in _REFUSED:
        option.hidden = True


def _asked(after_dashes: tuple[str, ...], recipe: str, runs: int, **options: Any) -> Asked:
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
    dump = options["dump"].resolve() if options["dump"] else None
    return Asked(settings, loaded, catalogue, options["from_step"], options["window"], dump)
