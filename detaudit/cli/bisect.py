"""``detaudit bisect``: find a minimal set of flags that makes a training deterministic."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from detaudit import redact, store
from detaudit.bisect import trials
from detaudit.bisect.flags import Bisector, Question
from detaudit.bisect.variations import VariationBisector, VaryQuestion
from detaudit.cli import completion
from detaudit.cli.engine import engine_runs, options_of, refuse_jobs
from detaudit.cli.execute import Shown, audit
from detaudit.cli.options import (
    FLAGS,
    TargetCommand,
    declared,
    engine_option,
    jobs_options,
    option,
    run_options,
    seed_option,
    target_options,
)
from detaudit.cli.settings import jobs_of, settings_of
from detaudit.config.flags import SEARCHED, Catalogue, Flag, load_catalogue
from detaudit.config.recipes import DEFAULT_SEED, load_recipe
from detaudit.config.variations import ALL
from detaudit.errors import UsageError
from detaudit.judge.verdict import ERROR_RATE
from detaudit.launch import Launcher
from detaudit.launch.local import LocalLauncher
from detaudit.model import Bisection, Group, VariationBisection
from detaudit.runner import MakeRunner, Observer, Runner

_OVER = ("flags", "variations")

_MOST_AT_ONCE = 16
"""As many as an answer rests on."""


_SEARCH = "Search"
_EXAMPLES = (
    ("which flags make it deterministic?", "detaudit bisect train.py"),
    ("the script's own arguments follow --", "detaudit bisect train.py -- --lr 0.1"),
    ("what else would do, and what does it cost?", "detaudit bisect train.py --alternatives --costs"),
    ("which changes of the environment change the training?", "detaudit bisect train.py --over variations"),
    (
        "on another machine, with a Python there",
        "detaudit bisect train.py --engine ssh:node1 --python /opt/env/bin/python",
    ),
    ("two runs at once, each with half of the CPU cores", "detaudit bisect train.py --jobs 2"),
    ("go on after an interruption", "detaudit bisect --resume .detaudit/20261121-145042-24652d70"),
)


@click.command(cls=TargetCommand, options_metavar="[OPTIONS]", examples=_EXAMPLES)
@target_options
@option("--over", group=_SEARCH, type=click.Choice(_OVER), default="flags", show_default=True,
        help="Search for the flags that fix it, or for the variations (--vary) that change the "
        "result.")  # fmt: skip
@declared("vary")
@option("--recipe", "recipes", group=FLAGS, multiple=True, metavar="NAME|FILE", shell_complete=completion.recipes,
        help="Search only the flags of this recipe. Repeatable. With --over variations: apply it in every run. "
        "[default: all standard and fallback flags that apply]")  # fmt: skip
@option("--flag", "flags", group=FLAGS, multiple=True, metavar="ID", shell_complete=completion.flags,
        help="Add a flag to the search. Repeatable.")  # fmt: skip
@option("--no-flag", "no_flags", group=FLAGS, multiple=True, metavar="ID", shell_complete=completion.flags,
        help="Leave a flag out of the search. Repeatable.")  # fmt: skip
@seed_option
@option("--confirm", group=_SEARCH, default=5, show_default=True, type=click.IntRange(2), metavar="N",
        help="Minimum number of matching runs.")  # fmt: skip
@option("--error-rate", "error", group=_SEARCH, default=ERROR_RATE, show_default=True, metavar="P",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        help="Accepted probability of a wrong answer if 1 run in 4 differs.")  # fmt: skip
@option("--full", group=_SEARCH, type=click.IntRange(2), metavar="N",
        help="Number of runs of the answer that go to the end of the training. The others are ended after a "
        "sixteenth of it. [default: as many as take 10 minutes, 2 at least]")  # fmt: skip
@option("--alternatives", group=_SEARCH, is_flag=True,
        help="Also try alternatives to each needed flag.")  # fmt: skip
@option("--costs", group=_SEARCH, is_flag=True,
        help="Measure how much longer the training takes with each needed flag, and with each alternative that was "
        "tried: runs with and without it take turns.")  # fmt: skip
@option("--resume", group=_SEARCH, type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
        shell_complete=completion.results,
        help="Resume an interrupted bisection from its results folder.")  # fmt: skip
@jobs_options
@engine_option
@declared("until")
@run_options
@click.pass_context
def command(
    ctx: click.Context, /, format_: str, quiet: bool, verbose: bool, resume: Path | None, **options: Any
) -> int:
    """Find a minimal set of flags that makes a training script deterministic.

    Runs the script without flags, then with flags, most likely ones first, until all runs match, bit for bit, and no
    flag in the set can be left out.
    """
    if resume is not None:
        options, question, earlier = _resumed(ctx, resume)
    else:
        question, earlier = _question(**options), ()
    settings, shown = question.settings, Shown(format_, quiet, verbose)

    def search(launcher: Launcher, make_runner: MakeRunner) -> int:
        def make_job(observer: Observer) -> Bisector | VariationBisector:
            if isinstance(question, VaryQuestion):
                return VariationBisector(question, launcher, observer, earlier)
            return Bisector(question, launcher, observer, earlier, make_runner)

        return audit(settings, make_job, shown)

    if options["engine"] is None or isinstance(question, VaryQuestion):
        return search(LocalLauncher(), Runner)
    return engine_runs().search(settings, options["engine"], options["python"], question.candidates, search)


def _resumed(ctx: click.Context, folder: Path) -> tuple[dict[str, Any], Question | VaryQuestion, tuple[Group, ...]]:
    """Return the options of the bisection in ``folder``, its question, and its trials so far."""
    earlier = store.load(folder)
    if not isinstance(earlier, Bisection | VariationBisection):
        raise UsageError(f"no bisection in {folder}", "Pass the results folder of `detaudit bisect`.")
    words = _with_secrets(earlier.command, ctx.params["after_dashes"], folder)
    with command.make_context("bisect", words, parent=ctx.parent) as context:
        options = {
            name: value
            for name, value in context.params.items()
            if name not in ("format_", "quiet", "verbose", "resume")
        }
    if options["artifacts"]:
        raise UsageError(
            "cannot resume a bisection that used --artifact: the files of its runs are gone",
            "Start it again without --resume.",
        )
    trials.refuse_edited(folder)
    question = _question(**options)
    settings = replace(question.settings, out=folder.resolve(), command=earlier.command)
    return options, replace(question, settings=settings), earlier.groups


def _with_secrets(earlier: tuple[str, ...], after_dashes: tuple[str, ...], folder: Path) -> list[str]:
    """Return the arguments of an earlier bisection; secrets among those after ``--`` are as they are now."""
    words = list(earlier[2:])
    arguments = ["--", *after_dashes]
    if not any(redact.HIDDEN in word for word in words):
        return words
    if words[-len(arguments) :] != [*redact.command(arguments)]:
        end = words.index("--") if "--" in words else len(words)
        raise UsageError(
            f"cannot resume {folder} without its secrets: they are not stored",
            f"Pass its arguments again, with the secrets: {shlex.join(words[end:])}",
        )
    return [*words[: -len(arguments)], *arguments]


def _question(over: str, engine: str | None, **options: Any) -> Question | VaryQuestion:
    if over == "variations":
        if engine is not None:
            message = "--engine does not work with --over variations, which are made on this machine"
            raise UsageError(message, "Start it on that machine, or leave out --engine.")
        return _over_variations(**options)
    if options["vary"]:
        raise UsageError("--vary needs --over variations", "Add --over variations.")
    return _over_flags(engine=engine, **options)


def _over_variations(after_dashes: tuple[str, ...], recipes: tuple[str, ...], **options: Any) -> VaryQuestion:
    if options["alternatives"]:
        raise UsageError("--alternatives does not work with --over variations", "Remove --alternatives.")
    if options["costs"]:
        raise UsageError("--costs does not work with --over variations", "Remove --costs.")
    if len(recipes) > 1:
        raise UsageError("--over variations takes only one --recipe", "Remove the other recipes.")
    if options["full"] is not None:
        raise UsageError("--full does not work with --over variations: all of its runs are whole", "Remove --full.")
    catalogue = load_catalogue()
    if options["jobs"] != 1 or options["devices"]:
        message = "--jobs does not work with --over variations, which change what runs at once share"
        raise UsageError(message, "Remove --jobs and --devices.")
    name = recipes[0] if recipes else "none"
    recipe = load_recipe(name, catalogue, seed=options["seed"], add=options["flags"], remove=options["no_flags"])
    options["vary"] = options["vary"] or (ALL,)
    settings = settings_of(after_dashes, (), 1, **options)
    if not settings.varying.under(recipe).varying:
        raise UsageError(
            f"recipe {recipe.name} pins every requested variation", "Choose a different variation or recipe."
        )
    return VaryQuestion(settings, catalogue, recipe, options["confirm"], options["error"])


def _over_flags(
    after_dashes: tuple[str, ...], recipes: tuple[str, ...], engine: str | None, **options: Any
) -> Question:
    if options["full"] is not None and options["until"] is not None:
        raise UsageError("--full cannot be combined with --until, which ends all runs", "Remove one of them.")
    if engine is not None:
        refuse_jobs(options["jobs"], options["devices"])
    catalogue = load_catalogue()
    settings = settings_of(after_dashes, (), 1, here=engine is None, **options)
    jobs = jobs_of(options["jobs"], options["devices"], _MOST_AT_ONCE)
    return Question(
        settings=replace(settings, jobs=jobs, engine_options=options_of(engine, options["python"])),
        catalogue=catalogue,
        candidates=_candidates(catalogue, recipes, options["flags"], options["no_flags"]),
        seed=DEFAULT_SEED if options["seed"] is None else options["seed"],
        confirm=options["confirm"],
        error=options["error"],
        alternatives=options["alternatives"],
        full=options["full"],
        costs=options["costs"],
    )


def _candidates(
    catalogue: Catalogue, recipes: tuple[str, ...], add: tuple[str, ...], remove: tuple[str, ...]
) -> tuple[Flag, ...]:
    ids = {flag.id for name in recipes for flag in load_recipe(name, catalogue).flags}
    if not recipes:
        ids = {flag.id for flag in catalogue if flag.action in SEARCHED}
    ids |= {catalogue.get(flag).id for flag in add}
    ids -= {catalogue.get(flag).id for flag in remove}
    if not ids:
        raise UsageError("no flags to try", "Choose a recipe that has flags, or leave out --recipe.")
    return catalogue.select(ids)
