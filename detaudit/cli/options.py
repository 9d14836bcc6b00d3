"""Options that several subcommands share."""

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from detaudit.cli import completion
from detaudit.cli.help import Command, Option
from detaudit.config import options as declared_options
from detaudit.config.options import DECLARED, declaration
from detaudit.config.recipes import MAX_SEED
from detaudit.errors import UsageError
from detaudit.model import Across
from detaudit.model.fact import either
from detaudit.report import FORMATS

F = TypeVar("F", bound=Callable[..., Any])


class TargetCommand(Command):
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
        seconds = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value} is not a number of seconds; leave --timeout out for no limit.", param, ctx)
        return seconds


class _Parsed(click.ParamType):  # type: ignore[type-arg]  # generic only from click 8.4 on
    """What the declaration of an option reads."""

    def __init__(self, name: str, parse: Callable[[Any], Any]) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See click.ParamType.convert."""
        try:
            return self._parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


class _JobsType(click.ParamType):  # type: ignore[type-arg]
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


def option(*names: str, group: str, **attributes: Any) -> Callable[[F], F]:
    """Return an option that --help lists in a ``group``; see click.option."""
    return click.option(*names, cls=Option, group=group, **attributes)


TARGET, FLAGS = "Target", "Flags"
RUNS, COMPARED, OUTPUT = declared_options.RUNS, declared_options.COMPARED, declared_options.OUTPUT
"""The groups of options that several subcommands have."""

_TYPES = {"timeout": _Seconds(), "isolate_root": click.Path(exists=True, file_okay=False)}
"""Types of click's own for declared options."""


def declared(*names: str) -> Callable[[F], F]:
    """Return options that are declared in config/options.py, by the names of their fields."""
    return _all_of(*map(_declared, names))


def _declared(name: str) -> Callable[[F], F]:
    one, default = declaration(name), DECLARED[name].default
    attributes: dict[str, Any] = {"help": one.help}
    if isinstance(default, bool):
        # A flag without which the value is True negates it.
        attributes |= {"is_flag": True, "callback": (lambda ctx, option, value: not value) if default else None}
    else:
        several = default == () or None
        attributes |= {"metavar": one.metavar, "multiple": several, "default": None if several else default}
        attributes["show_default"] = one.show_default
    if one.complete:
        attributes["shell_complete"] = getattr(completion, one.complete)
    if one.choices:
        attributes |= {"type": click.Choice(one.choices), "default": default.value}
        attributes["callback"] = lambda ctx, option, value: one.parse(value) if one.parse else value
    elif name in _TYPES or one.parse is not None:
        attributes["type"] = _TYPES.get(name) or _Parsed(name, one.parse)  # type: ignore[arg-type]
    return option(one.flag, name, group=one.group, **attributes)


def format_option(formats: Iterable[str] = FORMATS) -> Callable[[F], F]:
    """Return the option that selects one of ``formats``."""
    names = list(formats)
    return option("--format", "format_", group=OUTPUT, type=click.Choice(names), metavar="FORMAT", default="table",
                  show_default=True, help=f"Output format: {', '.join(names)}.")  # fmt: skip


def flag_options(recipe: str) -> Callable[[F], F]:
    """Return the options that change ``recipe``, such as "the recipe"."""
    return _all_of(
        option("--flag", "flags", group=FLAGS, multiple=True, metavar="ID[=VALUE]", shell_complete=completion.flags,
               help=f"Add a flag to {recipe}. Repeatable."),
        option("--no-flag", "no_flags", group=FLAGS, multiple=True, metavar="ID", shell_complete=completion.flags,
               help=f"Remove a flag from {recipe}. Repeatable."),
        seed_option,
    )  # fmt: skip


def _all_of(*options: Callable[[F], F]) -> Callable[[F], F]:
    def add(command: F) -> F:
        for one in reversed(options):
            command = one(command)
        return command

    return add


seed_option = option("--seed", group=FLAGS, type=click.IntRange(0, MAX_SEED), metavar="N",
                     help="Seed used by the flags of a recipe. [default: 0]")  # fmt: skip
out_option = option("--out", group=OUTPUT, type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
                    help="Results folder. [default: .detaudit/<time>-<id>]")  # fmt: skip
quiet_option = option("-q", "--quiet", group=OUTPUT, is_flag=True, help="Hide the progress line.")
verbose_option = option("-v", "--verbose", group=OUTPUT, is_flag=True,
                        help="Also print the command of each run, the variables that are set for it, the folder of its "
                        "logs, and how it ended, on stderr.")  # fmt: skip
python_option = option("--python", group=TARGET, metavar="EXE", shell_complete=completion.files,
                       help="Python interpreter that runs the training. [default: of the active environment or "
                       ".venv; detaudit's own if a framework is installed beside it]")  # fmt: skip
jobs_options = _all_of(
    option("--jobs", group=RUNS, type=_JobsType(), default="1", show_default=True, metavar="N|auto",
           help="Number of runs at once, each with an equal share of the CPU cores; auto: as many as there are "
           "devices, or cores for. Above 1 implies --isolate."),
    option("--devices", group=RUNS, metavar="IDS", callback=_devices,
           help="GPUs to use, such as 0,1,2,3: each run at once has its own part of them."),
)  # fmt: skip
"""How many runs go at once, and where."""

across_option = option("--across", group=COMPARED, type=click.Choice([one.value for one in Across]),
                       metavar="fail|warn", default=Across.FAIL.value, show_default=True,
                       help="What it means for the exit status that machines have different results, each its own "
                       "again and again.")  # fmt: skip
engine_option = option("--engine", group=RUNS, metavar="NAME[:WHERE]", help="Do the runs on other machines: "
                       "ssh:HOST,HOST, parsl:CONFIG.py or ray[:ADDRESS]. --python, or `python` of an audit, is the "
                       "interpreter there; it needs detaudit and the framework.")  # fmt: skip
spread_option = option("--spread", group=RUNS, is_flag=True, help="With --engine ssh or ray: do at least two runs on "
                       "each machine, and as many of each recipe on one as on another.")  # fmt: skip
engine_options = _all_of(engine_option, across_option)
"""Which machines do the runs, and what it means if they disagree."""


def against_option(about: str, group: str) -> Callable[[F], F]:
    """Return the option that names another commit; ``about`` says what for."""
    return option("--against", group=group, metavar="REF", help=about)


target_options = _all_of(
    click.argument("words", nargs=-1, metavar="SCRIPT [-- ARGS]... | -m MODULE [-- ARGS]... | -- COMMAND...",
                   shell_complete=completion.script),
    option("-m", "module", group=TARGET, default="", metavar="MODULE", help="Run a module, like python -m."),
    python_option,
)  # fmt: skip
"""What to run."""

runs_option = option("--runs", group=RUNS, default=5, show_default=True, type=click.IntRange(1), metavar="N",
                     help="Number of runs per recipe.")  # fmt: skip
recipes_option = option("--recipe", "recipes", group=FLAGS, multiple=True, metavar="NAME|FILE",
                        shell_complete=completion.recipes, help="Recipe to apply: none, seeds, all, any other from "
                        "`detaudit recipes`, or a YAML file. Repeatable. [default: none]")  # fmt: skip
_APART = ("until", "fail_fast", "vary", "isolate_root", "history")  # not every command has them, or has them here
start_options, compared_options = (
    declared(*(name for name in DECLARED if declaration(name).group == group and name not in _APART))
    for group in (RUNS, COMPARED)
)
run_options = _all_of(
    start_options,
    declared("isolate_root"),
    compared_options,
    declared("history"),
    out_option,
    format_option(),
    quiet_option,
    verbose_option,
)  # fmt: skip
"""How runs are started, what of them is compared, and where the results go."""


# What some commands cannot be told to compare: a trace, and so a fix, compares every stage, a resumed run no results.

STAGES_ALONE = ("stages",)
COMPARISONS = ("stages", "loss_pattern", "artifacts")


def hide_options(command: click.Command, names: Sequence[str]) -> None:
    """Leave these options of a run out of the help of a command that refuses them."""
    for one in command.params:
        if isinstance(one, click.Option) and one.name in names:
            one.hidden = True


def refuse_options(ctx: click.Context, names: Sequence[str]) -> None:
    """Raise UsageError if one of these options is on the command line."""
    if any(ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in names):
        flags = either(declaration(name).flag for name in names)
        raise UsageError(f"detaudit {ctx.info_name} does not support {flags}", "Leave that out, or use `detaudit run`.")
