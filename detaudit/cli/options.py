"""Options that several subcommands share."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from detaudit import wire
from detaudit.cli import complete
from detaudit.cli.help import Command, Option
from detaudit.config.options import Until
from detaudit.config.recipes import MAX_SEED
from detaudit.config.yamlfile import unknown
from detaudit.errors import UsageError
from detaudit.model import Across, Compare, FileBudget, OutputRules
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
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is not a number of seconds; leave --timeout out for no limit.", param, ctx)
        return found


class _UntilType(click.ParamType):  # type: ignore[type-arg]  # generic only from click 8.4 on
    """A step, or a time."""

    name = "until"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Until:
        """See click.ParamType.convert."""
        try:
            return value if isinstance(value, Until) else Until.parse(value)
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


class _BudgetType(click.ParamType):  # type: ignore[type-arg]
    """A time, a size, or both."""

    name = "budget"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> FileBudget:
        """See click.ParamType.convert."""
        try:
            return value if isinstance(value, FileBudget) else FileBudget.parse(value)
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


def _regexes(ctx: click.Context, option: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    return ignored_text(value)


def ignored_text(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the regexes of --ignore-text. Raises UsageError for one that is invalid."""
    found = tuple(patterns)
    for pattern in found:
        try:
            re.compile(pattern)
        except re.error as error:
            raise UsageError(f"--ignore-text {pattern!r} is not a valid regex: {error}", "Fix the regex.") from error
    return found


def output_rules(options: Mapping[str, Any]) -> OutputRules:
    """Return what the options say of what leaves a run."""
    return OutputRules(
        compare=Compare(options["compare"]),
        ignore=options["ignore"],
        ignore_text=options["ignore_text"],
        redact=options["redact"],
        file_budget=options["file_budget"] or FileBudget(),
    )


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


def option(*names: str, group: str, **attributes: Any) -> Callable[[F], F]:
    """Return an option that --help lists in a ``group``; see click.option."""
    return click.option(*names, cls=Option, group=group, **attributes)


TARGET, RUNS, FLAGS, COMPARED, OUTPUT = "Target", "Runs", "Flags", "What is compared", "Output"
"""The groups of options that several subcommands have."""


def format_option(formats: Iterable[str] = FORMATS) -> Callable[[F], F]:
    """Return the option that selects one of ``formats``."""
    names = list(formats)
    return option("--format", "format_", group=OUTPUT, type=click.Choice(names), metavar="FORMAT", default="table",
                  show_default=True, help=f"Output format: {', '.join(names)}.")  # fmt: skip


def flag_options(recipe: str) -> Callable[[F], F]:
    """Return the options that change ``recipe``, such as "the recipe"."""
    return _all_of(
        option("--flag", "flags", group=FLAGS, multiple=True, metavar="ID[=VALUE]", shell_complete=complete.flags,
               help=f"Add a flag to {recipe}. Repeatable."),
        option("--no-flag", "no_flags", group=FLAGS, multiple=True, metavar="ID", shell_complete=complete.flags,
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
python_option = option("--python", group=TARGET, metavar="EXE", shell_complete=complete.files,
                       help="Python interpreter that runs the training. [default: of the active environment or "
                       ".venv; detaudit's own if a framework is installed beside it]")  # fmt: skip
vary_option = option("--vary", group=RUNS, multiple=True, metavar="NAME", shell_complete=complete.variations,
                     help="Vary all, or a variation such as hash-seed, from run to run. Run 1 uses the control "
                     "value. Repeatable.")  # fmt: skip
until_option = option("--until", group=RUNS, type=_UntilType(), metavar="STEP|TIME",
                      help="End each run after this step, or after the last step that the first run does in a "
                      "time such as 90s.")  # fmt: skip
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

target_options = _all_of(
    click.argument("words", nargs=-1, metavar="SCRIPT [-- ARGS]... | -m MODULE [-- ARGS]... | -- COMMAND...",
                   shell_complete=complete.script),
    option("-m", "module", group=TARGET, default="", metavar="MODULE", help="Run a module, like python -m."),
    python_option,
)  # fmt: skip
"""What to run."""

runs_option = option("--runs", group=RUNS, default=5, show_default=True, type=click.IntRange(1), metavar="N",
                     help="Number of runs per recipe.")  # fmt: skip
recipes_option = option("--recipe", "recipes", group=FLAGS, multiple=True, metavar="NAME|FILE",
                        shell_complete=complete.recipes, help="Recipe to apply: none, seeds, all, any other from "
                        "`detaudit recipes`, or a YAML file. Repeatable. [default: none]")  # fmt: skip
start_options = _all_of(
    option("--timeout", group=RUNS, type=_Seconds(), metavar="S", help="Kill a run after S seconds."),
    option("--isolate", group=RUNS, is_flag=True,
           help="Run each run in its own copy of the repository, always at the same path."),
)  # fmt: skip
compared_options = _all_of(
    option("--stages", group=COMPARED, metavar="NAMES", default=",".join(wire.DEFAULT_STAGES), callback=_stages,
           shell_complete=complete.stages,
           help=f"Stages to record at each step, separated by commas: {', '.join(wire.STAGES)}, or all. "
           "[default: all but backward, reduce]"),
    option("--loss-pattern", group=COMPARED, metavar="REGEX",
           help="Read losses from stdout with this regex. Group `loss`, or the first group, is the loss; "
           "group `step`, if present, is the step."),
    option("--artifact", "artifacts_", group=COMPARED, multiple=True, metavar="PATH", shell_complete=complete.files,
           help="Compare a file the script writes. Globs allowed. Repeatable."),
    option("--no-files", group=COMPARED, is_flag=True,
           help="Do not compare the files the script writes, except named ones."),
    option("--compare", "compare", group=COMPARED, type=click.Choice([one.value for one in Compare]),
           metavar="result|training", default=Compare.RESULT.value, show_default=True,
           help="What decides: the training, the files, the printed text and the exit status, or the training and "
           "the tensors in files alone."),
    option("--ignore", "ignore", group=COMPARED, multiple=True, metavar="GLOB",
           help="Leave files out, named ones too. Repeatable."),
    option("--ignore-text", "ignore_text", group=COMPARED, multiple=True, metavar="REGEX", callback=_regexes,
           help="Leave out what matches in printed lines. Repeatable."),
    option("--redact", "redact", group=COMPARED, multiple=True, metavar="NAME",
           help="Neither store nor show values whose name contains this, beside those that look secret. Repeatable."),
    option("--file-budget", "file_budget", group=COMPARED, type=_BudgetType(), metavar="TIME,SIZE",
           help="Time and bytes for reading the files of one run. [default: 60s,8GiB]"),
)  # fmt: skip
run_options = _all_of(
    start_options,
    option("--isolate-root", group=RUNS, type=click.Path(exists=True, file_okay=False, path_type=Path),
           metavar="DIR", help="Copy this folder instead of the repository. Implies --isolate."),
    compared_options,
    out_option,
    format_option(),
    quiet_option,
    verbose_option,
)  # fmt: skip
"""How runs are started, what of them is compared, and where the results go."""
