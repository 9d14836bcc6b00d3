"""``detaudit compare``: show where two recordings of a training first differ, two commits, or two environments."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
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
    quiet_option,
    start_options,
    verbose_option,
)
from detaudit.cli.settings import command_line, recipes_of, settings_of
from detaudit.compare import compare
from detaudit.config import choice
from detaudit.environments import build
from detaudit.environments.packages import PackagePair
from detaudit.environments.sides import Environment, Environments, EnvironmentsRequest
from detaudit.errors import UsageError
from detaudit.launch.local import LocalLauncher
from detaudit.launch.packages import of_python
from detaudit.launch.target import resolve_target
from detaudit.model import Comparison, exit_code, to_json
from detaudit.report.plain import line
from detaudit.runner import Observer

_EXAMPLES = (
    ("two audits, such as of two commits", "detaudit compare before after"),
    ("a baseline and an audit", "detaudit compare detaudit.lock.json#digits .detaudit/20261121-145042-24652d70"),
    ("does the working tree train the same as the last commit?", "detaudit compare train.py --against HEAD"),
    ("where do the two codes part?", "detaudit compare train.py --against v1.0 --trace"),
    ("a pull request, on CI", "detaudit compare train.py --against merge-base --format github"),
    ("may the packages be updated?", "detaudit compare train.py --requirements old.txt --requirements new.txt"),
    ("which operation differs between two Pythons?",
     "detaudit compare train.py --python old/bin/python --python new/bin/python --trace"),
)  # fmt: skip

_OF_RECORDINGS = ("words", "recipe", "loss_pattern", "until", "evidence", "format_")
"""The parameters that a comparison of recordings has."""


@click.command(cls=TargetCommand, options_metavar="[OPTIONS]", examples=_EXAMPLES)
@click.argument("words", nargs=-1, shell_complete=completion.compared,
                metavar="A B | SCRIPT [-- ARGS]... | -m MODULE [-- ARGS]... | -- COMMAND...")  # fmt: skip
@against_option("Run the target as of this commit and as it is in the working tree, and compare the two; merge-base is "
                "where this branch began.", TARGET)  # fmt: skip
@option("-m", "module", group=TARGET, default="", metavar="MODULE", help="Run a module, like python -m.")
@option("--python", "pythons", group=TARGET, multiple=True, metavar="EXE", shell_complete=completion.files,
        help="Python interpreter that runs the training. Given twice: compare the two. "
        "[default: as for detaudit run]")  # fmt: skip
@option("--requirements", group=TARGET, multiple=True, type=click.Path(path_type=Path), metavar="FILE",
        shell_complete=completion.files, help="Given twice: compare the environments that two files of requirements "
        "make. They are locked and built by uv, in a cache that `detaudit environments` shows.")  # fmt: skip
@option("--allow-builds", group=TARGET, is_flag=True,
        help="Let uv build packages that have no wheel, which runs their code.")  # fmt: skip
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
    pythons: tuple[str, ...],
    requirements: tuple[Path, ...],
    allow_builds: bool,
    **options: Any,
) -> int:
    """Compare two recordings of a training step by step, bit for bit; or two commits, or two environments.

    A and B are results folders or baselines (detaudit.lock.json#NAME). Of an audit, the first finished run is
    compared. With --against, or with two environments, each side is run several times, in turn, at one path: only what
    a side repeats counts.

    Exit status: 0 identical, 1 different, 125 nothing to compare, or a side does not repeat itself.
    """
    of_environments = len(pythons) > 1 or bool(requirements)
    if against is None and not of_environments:
        return _recordings(ctx, words, recipe, format_, options)
    if options["evidence"] is not None:
        what = "two environments" if of_environments else "two codes"
        message = f"--evidence archives a comparison of two recordings, and {what} are compared here"
        raise UsageError(message, "Leave it out; `detaudit run --evidence FILE` archives an audit of each.")
    if of_environments:
        _refuse(against, pythons, requirements)
    names = (recipe,) if recipe is not None else ()
    commit = resolve(Path.cwd(), against) if against is not None else None
    loaded = recipes_of(names, options, choice.devices())
    runs, traced, quiet, verbose = (options.pop(name) for name in ("runs", "traced", "quiet", "verbose"))
    settings = settings_of(after_dashes, loaded, runs, words=words, python=next(iter(pythons), None), **options)
    if commit is None:
        if settings.target.is_command:
            raise UsageError(
                "two environments are compared of a script or a module, and a command starts its own Python",
                "Name a script, or a module with -m.",
            )
        if requirements:
            print_python([settings.target], quiet)
            environments = _built(requirements, settings.target.python, builds=allow_builds)
        else:
            others = (resolve_target(words, after_dashes, options["module"], python).python for python in pythons)
            environments = [Environment(*one) for one in zip(pythons, others, strict=True)]
        a, b = environments
        of_both = PackagePair(of_python(a.python), of_python(b.python))
        named = [word for file in requirements for word in ("--requirements", str(file))]
        named += [word for python in pythons for word in ("--python", python)] + ["--allow-builds"] * allow_builds
        settings = replace(settings, target=replace(settings.target, python=a.python, python_found=False))
        request = EnvironmentsRequest(settings, (a, b), of_both, tuple(named), traced)
    else:
        print_python([settings.target], quiet)

    def make_job(observer: Observer) -> Sides | Environments:
        if commit is None:
            return Environments(request, LocalLauncher(), observer)
        return Sides(AgainstRequest(settings, commit, traced), LocalLauncher(), observer)

    def save(comparison: Comparison) -> None:
        store.write(settings.out / store.COMPARISON, to_json(comparison))

    return execute(settings.mark, make_job, save, out=settings.out, shown=Shown(format_, quiet, verbose))


def _refuse(against: str | None, pythons: Sequence[str], requirements: Sequence[Path]) -> None:
    """Raise UsageError for anything but two Pythons, or two files of requirements for one."""
    if against is not None:
        message = "--against compares two commits, and two environments are named as well"
        raise UsageError(message, "Compare one after the other: first with --against and one --python.")
    if requirements and (len(requirements) != 2 or len(pythons) > 1):
        what = f"{len(requirements)} --requirements and {len(pythons)} --python"
        raise UsageError(f"two environments are compared, not {what}", "Name two files, and at most one --python.")
    if not requirements and len(pythons) != 2:
        raise UsageError(f"two environments are compared, not {len(pythons)}", "Name two.")
    names = [str(file) for file in requirements] or [*pythons]
    if names[0] == names[1]:
        raise UsageError(f"both environments are {names[0]}", "Name two different ones.")


def _built(requirements: Sequence[Path], python: str, *, builds: bool) -> list[Environment]:
    """Return the environments of files of requirements: both are locked before any is built."""
    with TemporaryDirectory(prefix="detaudit-") as folder:
        targets = [Path(folder, letter) for letter in store.SIDES]
        locks = [build.lock(f, python, to, builds=builds) for f, to in zip(requirements, targets, strict=True)]
        pythons = [
            build.build(lock, python, lambda text: click.echo(line(text), err=True), builds=builds) for lock in locks
        ]
    return [Environment(str(file), str(one)) for file, one in zip(requirements, pythons, strict=True)]


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
            f"{max(named.opts, key=len)} is of a target, and there is neither --against nor a second environment"
            if named
            else "two recordings are compared, or a target with --against REF, or in two environments"
        )
        raise UsageError(
            what,
            "Pass two results folders or baselines, --against HEAD, or two environments: --python A --python B.",
        )
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
