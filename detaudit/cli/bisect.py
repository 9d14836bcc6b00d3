"""``detaudit bisect``: which flags make a training deterministic, and which of them are really needed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from detaudit.auditor import store
from detaudit.auditor.bisect.flags import Bisector, Question
from detaudit.auditor.bisect.variations import VariationBisector, VaryQuestion
from detaudit.auditor.judge.confidence import ERROR_RATE
from detaudit.auditor.runs.observer import Observer
from detaudit.cli.common import TargetCommand, run_options, settings_of, target_options, vary_option
from detaudit.cli.execute import audit
from detaudit.errors import UsageError
from detaudit.launch.local import LocalLauncher
from detaudit.launch.plan import Settings
from detaudit.model import Bisection, Group, VariationBisection
from detaudit.recipe.flags import Catalogue, Flag, load_catalogue
from detaudit.recipe.recipes import DEFAULT_SEED, load_recipe
from detaudit.recipe.variations import ALL

_TRIED = ("auto", "fallback")
_NOT_ASKED = ("format_", "quiet", "resume", "over")
_OVER = ("flags", "variations")


@click.command(cls=TargetCommand, options_metavar="[OPTIONS]")
@target_options
@click.option("--over", type=click.Choice(_OVER), default="flags", show_default=True,
              help="Which flags mend it, or which of the things that --vary names change it?")  # fmt: skip
@vary_option
@click.option("--recipe", "recipes", multiple=True, metavar="NAME|FILE",
              help="Search among the flags of this recipe only; repeatable. Over variations: set it in every run. "
              "[default: all that apply]")  # fmt: skip
@click.option("--flag", "flags", multiple=True, metavar="ID", help="Search among this flag as well.")
@click.option("--no-flag", "no_flags", multiple=True, metavar="ID", help="Do not try this flag.")
@click.option("--confirm", default=5, show_default=True, type=click.IntRange(2), metavar="N",
              help="How many runs must match at least.")  # fmt: skip
@click.option("--error-rate", "error", default=ERROR_RATE, show_default=True, metavar="P",
              type=click.FloatRange(0, 1, min_open=True, max_open=True),
              help="How often the answer may be wrong, where one run in four deviates.")  # fmt: skip
@click.option("--alternatives", is_flag=True, help="Try what may stand in for each needed flag, and what it costs.")
@click.option("--resume", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="Go on with a bisection that was interrupted.")  # fmt: skip
@run_options
@click.pass_context
def command(ctx: click.Context, /, format_: str, quiet: bool, resume: Path | None, **options: Any) -> int:
    """Find the flags that make a training script deterministic, and prove that each is needed.

    Runs it as it stands, then with flags, in the order in which the first difference suggests them, until a smallest
    set is found under which all runs match, bit for bit, and without any one of which they do not.
    """
    over, after_dashes = options.pop("over"), ctx.meta.get("after_dashes", ())
    if resume is not None:
        return _resumed(ctx, resume, format_, quiet)
    if over == "variations":
        return _over_variations(_varying_question(after_dashes, **options), (), format_, quiet)
    if options["vary"]:
        raise UsageError("--vary is for a bisection over variations", "Add --over variations.")
    return _over_flags(_question(after_dashes, **options), (), format_, quiet)


def _over_flags(question: Question, earlier: tuple[Group, ...], format_: str, quiet: bool) -> int:
    def story(observer: Observer) -> Bisector:
        return Bisector(question, LocalLauncher(), observer, earlier)

    return audit(question.settings, story, format_=format_, quiet=quiet)


def _over_variations(question: VaryQuestion, earlier: tuple[Group, ...], format_: str, quiet: bool) -> int:
    def story(observer: Observer) -> VariationBisector:
        return VariationBisector(question, LocalLauncher(), observer, earlier)

    return audit(question.settings, story, format_=format_, quiet=quiet)


def _resumed(ctx: click.Context, folder: Path, format_: str, quiet: bool) -> int:
    """Ask again what was asked in ``folder``, with the trials that are there."""
    earlier = store.load(folder)
    if not isinstance(earlier, Bisection | VariationBisection):
        raise UsageError(f"{folder} holds no bisection", "Name a folder that `detaudit bisect` wrote.")
    asked = list(earlier.command[2:])
    with command.make_context("bisect", asked, parent=ctx.parent) as context:
        options = {name: value for name, value in context.params.items() if name not in _NOT_ASKED}
        after_dashes = context.meta.get("after_dashes", ())
    if options["artifacts_"]:
        raise UsageError(
            "a bisection with --artifact cannot go on: the files of its runs are gone",
            "Start it again without --resume.",
        )

    def again(settings: Settings) -> Settings:
        return replace(settings, out=folder.resolve(), command=earlier.command)

    if isinstance(earlier, VariationBisection):
        varying = _varying_question(after_dashes, **options)
        return _over_variations(replace(varying, settings=again(varying.settings)), earlier.groups, format_, quiet)
    question = _question(after_dashes, **options)
    return _over_flags(replace(question, settings=again(question.settings)), earlier.groups, format_, quiet)


def _varying_question(after_dashes: tuple[str, ...], recipes: tuple[str, ...], **options: Any) -> VaryQuestion:
    if options["alternatives"]:
        raise UsageError("--alternatives is for a bisection over flags", "Leave --alternatives out.")
    if len(recipes) > 1:
        raise UsageError("every run has one recipe", "Name one --recipe.")
    catalogue = load_catalogue()
    name = recipes[0] if recipes else "none"
    recipe = load_recipe(name, catalogue, seed=options["seed"], add=options["flags"], remove=options["no_flags"])
    options["vary"] = options["vary"] or (ALL,)
    settings = settings_of(after_dashes, (), 1, **options)
    if not settings.varying.under(recipe).moving:
        raise UsageError(f"the recipe {recipe.name} holds all that was to vary still", "Name another variation.")
    return VaryQuestion(settings, catalogue, recipe, options["confirm"], options["error"])


def _question(after_dashes: tuple[str, ...], recipes: tuple[str, ...], **options: Any) -> Question:
    catalogue = load_catalogue()
    return Question(
        settings=settings_of(after_dashes, (), 1, **options),
        catalogue=catalogue,
        candidates=_candidates(catalogue, recipes, options["flags"], options["no_flags"]),
        seed=DEFAULT_SEED if options["seed"] is None else options["seed"],
        confirm=options["confirm"],
        error=options["error"],
        alternatives=options["alternatives"],
    )


def _candidates(
    catalogue: Catalogue, recipes: tuple[str, ...], add: tuple[str, ...], remove: tuple[str, ...]
) -> tuple[Flag, ...]:
    ids = {flag.id for name in recipes for flag in load_recipe(name, catalogue).flags}
    if not recipes:
        ids = {flag.id for flag in catalogue if flag.action in _TRIED}
    ids |= {catalogue.get(flag).id for flag in add}
    ids -= {catalogue.get(flag).id for flag in remove}
    if not ids:
        raise UsageError("there is no flag to try", "Name a recipe that has some, or leave --recipe out.")
    return catalogue.select(ids)
