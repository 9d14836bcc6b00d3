"""Options that several subcommands share."""

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from detaudit import wire
from detaudit.errors import UsageError
from detaudit.launch.until import Until
from detaudit.recipe.names import unknown
from detaudit.recipe.recipes import MAX_SEED
from detaudit.report import FORMATS

F = TypeVar("F", bound=Callable[..., Any])


class TargetCommand(click.Command):
    """A command that runs a target; passes what follows ``--`` to its callback as ``after_dashes``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click.Command.parse_args, which would join the words before and after ``--``."""
        end = args.index("--") if "--" in args else len(args)
        ctx.params["after_dashes"] = tuple(args[end + 1 :])
        return super().parse_args(ctx, args[:end])


class _Seconds(click.FloatRange):
    """A positive number of seconds. NaN and infinity would never be reached."""

    def __init__(self) -> None:
        super().__init__(0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See click.ParamType.convert."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is not a number of seconds; leave --timeout out for no limit.", param, ctx)
        return found


class _UntilType(click.ParamType[Until]):
    """A step, or a time."""

    name = "until"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Until:
        """See click.ParamType.convert."""
        try:
            return value if isinstance(value, Until) else Until.parse(value)
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


class _JobsType(click.ParamType[int | None]):
    """A number of runs, or None for ``auto``."""

    name = "jobs"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        """See click.ParamType.convert."""
        if value == "auto":
            return None
        if not str(value).isdecimal() or not int(value):
            self.fail(f"{value!r} is neither a number of runs nor auto.", param, ctx)
        return int(value)


def _devices(ctx: click.Context, option: click.Parameter, value: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in (value or "").split(","))
    if value is not None and not all(names):
        raise UsageError(f"--devices {value!r} does not name devices", "Name them as in --devices 0,1.")
    return names if value is not None else ()


def _stages(ctx: click.Context, option: click.Parameter, value: str) -> tuple[str, ...]:
    names = wire.STAGES if value == "all" else tuple(filter(None, (name.strip() for name in value.split(","))))
    wrong = [name for name in names if name not in wire.STAGES]
    if wrong or not names:
        raise unknown("stage", ", ".join(wrong), (*wire.STAGES, "all"))
    return tuple(stage for stage in wire.STAGES if stage in names)


def format_option(formats: Iterable[str] = FORMATS) -> Callable[[F], F]:
    """Return the option that selects one of ``formats``."""
    return click.option("--format", "format_", type=click.Choice(list(formats)), default="table", show_default=True,
                        help="Output format.")  # fmt: skip


def flag_options(recipe: str) -> Callable[[F], F]:
    """Return the options that change ``recipe``, such as "the recipe"."""
    return _all_of(
        click.option("--flag", "flags", multiple=True, metavar="ID[=VALUE]",
                     help=f"Add a flag to {recipe}. Repeatable."),
        click.option("--no-flag", "no_flags", multiple=True, metavar="ID",
                     help=f"Remove a flag from {recipe}. Repeatable."),
    )  # fmt: skip


def _all_of(*options: Callable[[F], F]) -> Callable[[F], F]:
    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


out_option = click.option("--out", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
                          help="Results folder. [default: .detaudit/<time>-<id>]")  # fmt: skip
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Hide the progress line.")
python_option = click.option("--python", metavar="EXE", help="Python interpreter that runs the training. "
                             "[default: of the active environment or .venv; "
                             "detaudit's own if a framework is installed beside it]")  # fmt: skip
vary_option = click.option("--vary", multiple=True, metavar="NAME",
                           help="Vary all, or a variation such as hash-seed, from run to run. Run 1 uses the control "
                           "value. Repeatable.")  # fmt: skip
until_option = click.option("--until", type=_UntilType(), metavar="STEP|TIME",
                            help="End each run after this step, or after the last step that the first run does in a "
                            "time such as 90s.")  # fmt: skip
jobs_options = _all_of(
    click.option("--jobs", type=_JobsType(), default="1", show_default=True, metavar="N|auto",
                 help="Number of runs at once, each with an equal share of the CPU cores; auto: as many as there are "
                 "devices, or cores for. Above 1 implies --isolate."),
    click.option("--devices", metavar="IDS", callback=_devices,
                 help="GPUs to use, such as 0,1,2,3: each run at once has its own part of them."),
)  # fmt: skip
"""How many runs go at once, and where."""

target_options = _all_of(
    click.argument("words", nargs=-1, metavar="SCRIPT [-- ARGS]... | -m MODULE [-- ARGS]... | -- COMMAND..."),
    click.option("-m", "module", default="", metavar="MODULE", help="Run a module, like python -m."),
)
"""What to run."""

run_options = _all_of(
    click.option("--seed", type=click.IntRange(0, MAX_SEED), metavar="N",
                 help="Seed used by the flags of a recipe. [default: 0]"),
    click.option("--timeout", type=_Seconds(), metavar="S", help="Kill a run after S seconds."),
    click.option("--stages", metavar="NAMES", default=",".join(wire.DEFAULT_STAGES), show_default=True,
                 callback=_stages,
                 help="Stages to record at each step, separated by commas, or `all` (adds backward)."),
    click.option("--loss-pattern", metavar="REGEX",
                 help="Read losses from stdout with this regex. Group `loss`, or the first group, is the loss; "
                 "group `step`, if present, is the step."),
    click.option("--artifact", "artifacts_", multiple=True, metavar="PATH",
                 help="Compare a file the script writes. Globs allowed. Repeatable."),
    click.option("--no-files", is_flag=True,
                 help="Do not compare the files the script writes, except named ones."),
    click.option("--isolate", is_flag=True,
                 help="Run each run in its own copy of the repository, always at the same path."),
    click.option("--isolate-root", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
                 help="Copy this folder instead of the repository. Implies --isolate."),
    python_option,
    out_option,
    format_option(),
    quiet_option,
)  # fmt: skip
"""How runs are started, what of them is compared, and where the results go."""
