"""``detaudit compare``: show where two recordings of a training first differ, or two commits."""

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from detaudit import advice, store
from detaudit.against.commits import resolve
from detaudit.against.sides import AgainstRequest, Sides
from detaudit.baseline import ended, load, location
from detaudit.cli import completion
from detaudit.cli.execute import Shown, execute, print_python, print_report
from detaudit.cli.options import (
    FLAGS,
    RUNS,
    TARGET,
    TargetCommand,
    against_option,
    compared_options,
    declared,
    flag_options,
    format_option,
    option,
    out_option,
    python_option,
    quiet_option,
    start_options,
    verbose_option,
)
from detaudit.cli.settings import command_line, recipes_of, settings_of
from detaudit.compare import compare
from detaudit.config import choice
from detaudit.errors import UsageError
from detaudit.launch.local import LocalLauncher
from detaudit.model import Comparison, exit_code, to_json
from detaudit.report.plain import line
from detaudit.runner import Observer

_EXAMPLES = (
    ("two audits, such as of two commits", "detaudit compare before after"),
    ("a baseline and an audit", "detaudit compare detaudit.lock.json#digits .detaudit/20261121-145042-24652d70"),
    ("does the working tree train the same as the last commit?", "detaudit compare train.py --against HEAD"),
    ("where do the two codes part?", "detaudit compare train.py --against v1.0 --trace"),
    ("a pull request, on CI", "detaudit compare train.py --against merge-base --format github"),
)

_OF_RECORDINGS = ("words", "recipe", "loss_pattern", "until", "evidence", "format_")
"""The parameters that a comparison of recordings has."""


@click.command(cls=TargetCommand, options_metavar="[OPTIONS]", examples=_EXAMPLES)
@click.argument("words", nargs=-1, shell_complete=completion.compared,
                metavar="A B | SCRIPT [-- ARGS]... | -m MODULE [-- ARGS]... | -- COMMAND...")  # fmt: skip
@against_option("Run the target as of this commit and as it is in the working tree, and compare the two; merge-base is "
                "where this branch began.", TARGET)  # fmt: skip
@option("-m", "module", group=TARGET, default="", metavar="MODULE", help="Run a module, like python -m.")
@python_option
@option("--runs", group=RUNS, default=3, show_default=True, type=click.IntRange(2), metavar="N",
        help="Number of runs of each side.")  # fmt: skip
@option("--trace", "traced", group=RUNS, is_flag=True,
        help="If the sides differ, record the operations of both, and show where the two codes part.")  # fmt: skip
@option("--recipe", group=FLAGS, metavar="NAME", shell_complete=completion.recipes,
        help="Recipe to apply to both sides; of two recordings, the one to compare, if the audit has several. "
        "[default: none; the first]")  # fmt: skip
@flag_options("the recipe")
@declared("until")
@start_options
@compared_options
@out_option
@declared("evidence")
@format_option()
@quiet_option
@verbose_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    words: tuple[str, ...],
    against: str | None,
    after_dashes: tuple[str, ...],
    recipe: str | None,
    format_: str,
    **options: Any,
) -> int:
    """Compare two recordings of a training step by step, bit for bit, or the working tree with another commit.

    A and B are results folders or baselines (detaudit.lock.json#NAME). Of an audit, the first finished run is
    compared. With --against, each side is run several times, in turn, at one path: only what a side repeats counts.

    Exit status: 0 identical, 1 different, 125 nothing to compare, or a side does not repeat itself.
    """
    if against is None:
        return _recordings(ctx, words, recipe, format_, options)
    if options["evidence"] is not None:
        message = "--evidence archives a comparison of two recordings, and --against compares two codes"
        raise UsageError(message, "Leave it out; `detaudit run --evidence FILE` archives an audit of each.")
    commit = resolve(Path.cwd(), against)
    names = (recipe,) if recipe is not None else ()
    loaded = recipes_of(names, options, choice.devices())
    runs, traced, quiet, verbose = (options.pop(name) for name in ("runs", "traced", "quiet", "verbose"))
    settings = settings_of(after_dashes, loaded, runs, words=words, **options)
    print_python([settings.target], quiet)

    def make_job(observer: Observer) -> Sides:
        return Sides(AgainstRequest(settings, commit, traced), LocalLauncher(), observer)

    def save(comparison: Comparison) -> None:
        store.write(settings.out / store.COMPARISON, to_json(comparison))

    return execute(settings.mark, make_job, save, out=settings.out, shown=Shown(format_, quiet, verbose))


def _recordings(
    ctx: click.Context, words: tuple[str, ...], recipe: str | None, format_: str, options: dict[str, Any]
) -> int:
    """Compare two recordings."""
    others = (one for one in ctx.command.params if one.name not in _OF_RECORDINGS)
    named = next(
        (one for one in others if ctx.get_parameter_source(one.name or "") is ParameterSource.COMMANDLINE), None
    )
    if named is not None or ctx.params.get("after_dashes") or len(words) != 2:
        what = (
            f"{max(named.opts, key=len)} is of a target, and there is no --against"
            if named
            else "two recordings are compared, or a target with --against REF"
        )
        raise UsageError(what, "Pass two results folders or baselines, or name a commit: --against HEAD.")
    a, b = words
    until = options["until"]
    if until is not None and until.step is None:
        raise UsageError(f"--until {until} is a time, and recordings have steps", "Name a step.")
    ours, theirs = load(a, recipe, options["loss_pattern"]), load(b, recipe, options["loss_pattern"])
    comparison = compare(
        *(side.recording if until is None else ended(side.recording, until.step) for side in (ours, theirs)),
        names=(a, b),
        command=command_line(),
        warnings=(*ours.warnings, *theirs.warnings),
    )
    print_report(comparison, format_)
    evidence = options["evidence"]
    if evidence is not None:
        from detaudit.evidence import pack  # which few need

        sides = {name: location(side) for name, side in zip(pack.SIDES, (a, b), strict=True)}
        pack.of_comparison(evidence, comparison, sides, Path.cwd())
        click.echo(f"evidence: {line(advice.shown(evidence))}", err=True)
    return exit_code(comparison)
