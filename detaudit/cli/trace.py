"""``detaudit trace``: find the line where two runs diverge."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from detaudit.cli import completion
from detaudit.cli.engine import engine_runs, options_of, refuse_jobs
from detaudit.cli.execute import Shown, audit
from detaudit.cli.options import (
    FLAGS,
    RUNS,
    STAGES_ALONE,
    TargetCommand,
    declared,
    engine_option,
    flag_options,
    hide_options,
    jobs_options,
    option,
    refuse_options,
    run_options,
    target_options,
)
from detaudit.cli.settings import settings_of
from detaudit.config import choice
from detaudit.config.flags import DEVICES, load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.errors import UsageError
from detaudit.fix.trials import EditTrials
from detaudit.launch import Launcher
from detaudit.launch.local import LocalLauncher
from detaudit.runner import MakeRunner, Runner
from detaudit.trace.tracer import ReplayRequest, Tracer, TraceRequest

_ON_CPU = "torch-on-cpu"

_RECORDED = "What is recorded"
_REPLAYED = "Replay"
_EXAMPLES = (
    ("which line makes two runs diverge?", "detaudit trace train.py"),
    ("what is left once the seeds are set?", "detaudit trace train.py --recipe seeds"),
    ("save both versions of the tensor that differs", "detaudit trace train.py --dump tensors.npz"),
    ("record steps 100 to 104", "detaudit trace train.py --from-step 100 --window 5"),
    ("write a script that shows the race, for a bug report", "detaudit trace train.py --repro race"),
    (
        "on another machine, with a Python there",
        "detaudit trace train.py --engine ssh:node1 --python /opt/env/bin/python",
    ),
    ("where does the number of threads first change it?", "detaudit trace train.py --vary threads"),
)


@click.command(cls=TargetCommand, options_metavar="[OPTIONS]", examples=_EXAMPLES)
@target_options
@option("--runs", group=RUNS, default=5, show_default=True, type=click.IntRange(2), metavar="N",
        help="Maximum number of runs at each tracing level until two differ.")  # fmt: skip
@option("--full", group=RUNS, is_flag=True,
        help="Let every run go to its end, unless it differs or records operations. [default: if a training takes "
        "more than 5 s, the first run is ended then, and the next one at 64 times as many steps]")  # fmt: skip
@option("--recipe", group=FLAGS, metavar="NAME|FILE", default="none", show_default=True,
        shell_complete=completion.recipes,
        help="Apply this recipe, and trace the difference that remains.")  # fmt: skip
@flag_options("the recipe")
@option("--on-cpu", group=FLAGS, metavar="MODULE",
        help="Run this module on the CPU, to test whether one of its GPU kernels is the cause.")  # fmt: skip
@option("--from-step", group=_RECORDED, type=click.IntRange(0), metavar="N",
        help="First step to record. [default: the first at which two runs differ]")  # fmt: skip
@option("--window", group=_RECORDED, default=1, show_default=True, type=click.IntRange(1), metavar="K",
        help="Number of steps to record.")  # fmt: skip
@option("--dump", group=_RECORDED, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.npz",
        help="Save both versions of the differing tensor, as `a` and `b`.")  # fmt: skip
@option("--replay", group=_REPLAYED, type=click.IntRange(2), metavar="K",
        help="Repeat the operation that is the culprit K times on its recorded inputs, under each of several "
        "conditions. [default: 200 times, or as often as 4 s allow]")  # fmt: skip
@option("--no-replay", group=_REPLAYED, is_flag=True, help="Do not repeat the operation that is the culprit.")
@option("--repro", group=_REPLAYED, type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
        help="Write a script that repeats it, with its inputs beside it, for a bug report.")  # fmt: skip
@jobs_options
@engine_option
@declared("vary")
@run_options
@click.pass_context
def command(ctx: click.Context, /, format_: str, quiet: bool, verbose: bool, **options: Any) -> int:
    """Find the line where two runs diverge: step, operation and cause.

    Runs the script until two runs differ, then records every operation around that step in two more runs and names
    the first one with identical inputs but different output. If its inputs already differ, it names the line that
    introduced the difference.
    """
    refuse_options(ctx, STAGES_ALONE)
    request = _request(**options)
    settings, shown = request.settings, Shown(format_, quiet, verbose)

    def search(launcher: Launcher, make_runner: MakeRunner) -> int:
        return audit(settings, lambda observer: Tracer(request, launcher, observer, make_runner), shown)

    if options["engine"] is None:
        return search(LocalLauncher(), Runner)
    return engine_runs().search(settings, options["engine"], options["python"], tuple(request.catalogue), search)


hide_options(command, STAGES_ALONE)


def _request(
    after_dashes: tuple[str, ...], recipe: str, runs: int, full: bool, engine: str | None, **options: Any
) -> TraceRequest:
    catalogue, here = load_catalogue(), engine is None
    if not here:
        refuse_jobs(options["jobs"], options["devices"])
    on_cpu = [f"{_ON_CPU}={options['on_cpu']}"] if options["on_cpu"] else []
    loaded = load_recipe(
        recipe,
        catalogue,
        devices=choice.devices() if here else DEVICES,
        seed=options["seed"],
        add=[*options["flags"], *on_cpu],
        remove=options["no_flags"],
    )
    settings = settings_of(after_dashes, (loaded,), runs, here=here, **options)
    remote_options = options_of(engine, options["python"])
    settings = replace(settings, stepwise=not (full or options["vary"]), engine_options=remote_options)
    dump = options["dump"].resolve() if options["dump"] else None
    repro = options["repro"].resolve() if options["repro"] else None
    if options["no_replay"] and (options["replay"] or repro):
        raise UsageError("--no-replay was given with --replay or --repro", "Leave one of them out.")
    if not here and (options["replay"] or repro):
        message = "--replay and --repro repeat the operation on this machine, and its inputs are of another"
        raise UsageError(message, "Leave them out, or trace on that machine without --engine.")
    replay = ReplayRequest(options["replay"], None, repro) if options["replay"] else ReplayRequest(repro=repro)
    chosen = replay if here and not options["no_replay"] else None
    edits = EditTrials if here else None
    return TraceRequest(settings, loaded, catalogue, options["from_step"], options["window"], dump, chosen, edits)
