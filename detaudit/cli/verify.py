"""``detaudit verify``: check an archive of evidence, and what has changed since."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from detaudit import advice, wire
from detaudit.audit import Auditor
from detaudit.baseline import load
from detaudit.cli import completion
from detaudit.cli.execute import execute_quietly
from detaudit.cli.options import TargetCommand, option, python_option
from detaudit.cli.settings import settings_of
from detaudit.compare import compare
from detaudit.config.flags import load_catalogue
from detaudit.config.options import RunOptions, values_of
from detaudit.config.recipes import Recipe
from detaudit.errors import ExitCode, UsageError
from detaudit.evidence import materials, pack
from detaudit.evidence.statement import NOTE
from detaudit.evidence.verify import Verified, unpacked, verify
from detaudit.launch.local import LocalLauncher
from detaudit.launch.plan import Settings
from detaudit.model import Audit, ComparisonVerdict, Group
from detaudit.report.plain import line

_EXAMPLES = (
    ("is it as it was written, and what has changed since?", "detaudit verify audit.zip"),
    ("far from the project: the archive alone", "detaudit verify audit.zip --archive-only"),
    ("does the project still give the same result?", "detaudit verify audit.zip --rerun"),
)


@click.command(cls=TargetCommand, options_metavar="[OPTIONS]", examples=_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE [-- COMMAND]...",
                shell_complete=completion.files)  # fmt: skip
@option("--archive-only", group="What is checked", is_flag=True,
        help="Do not compare the code, the data, the packages and the machine with those here.")  # fmt: skip
@option("--rerun", group="What is checked", is_flag=True,
        help="Run the training of this folder once, and compare it with the first run of the archive.")  # fmt: skip
@python_option
def command(
    file: Path,
    archive_only: bool,
    rerun: bool,
    python: str | None,
    after_dashes: tuple[str, ...],
) -> int:
    """Check an archive of evidence: its hashes, its statement, and its verdict, judged again from its logs.

    Lists what has changed since in the working directory: code, data, packages, commit and machine. No code of
    the archive is ever run.

    Exit status: 0 all right, 1 something was edited or has changed, 2 not an archive.
    """
    with unpacked() as folder:
        checked = verify(file, Path(folder))
        if not archive_only:
            checked.changed += materials.changes(checked.used, checked.report, Path.cwd(), python or "")
        if rerun:
            checked.changed += _rerun(checked, Path(folder) / pack.RESULTS, after_dashes, python)
            if not any(text.startswith("rerun") for text in checked.changed):
                click.echo("rerun: the same result as in the archive")
        for text in _lines(file, checked, alone=archive_only):
            click.echo(line(text))
    return ExitCode.DETERMINISTIC if checked.is_right else ExitCode.NONDETERMINISTIC


def _lines(file: Path, checked: Verified, *, alone: bool) -> Iterator[str]:
    yield from (f"edited: {text}" for text in checked.edited)
    yield from (f"changed: {text}" for text in checked.changed)
    yield from (f"not judged again: {text}" for text in checked.taken)
    yield from checked.notes
    if not checked.edited:
        yield f"{file}: as it was written: {checked.report.verdict}, judged again from its logs"
        if not checked.changed and not alone:
            yield "nothing that was hashed has changed since"
    else:
        yield f"{file}: not as it was written"
    yield NOTE


# Run the user's tree again.


def _rerun(checked: Verified, results: Path, typed: Sequence[str], python: str | None) -> Iterator[str]:
    """Run each audit of the archive once in the working directory; yield in which the result is another one."""
    audits = materials.audits(checked.report)
    if checked.edited:
        raise UsageError("the archive was edited, so it does not say what to compare with", "Leave --rerun out.")
    if not audits or any(type(audit) is not Audit for audit in audits.values()):
        raise UsageError("--rerun needs an archive of `detaudit run` or `detaudit check`", "Leave --rerun out.")
    for name, audit in audits.items():
        group = next((one for one in audit.groups if one.first_finished is not None), None)
        if group is None:
            raise UsageError("no run of the archive finished, so there is nothing to compare with", "Leave it out.")
        settings = _settings(checked, audit, group, typed, python)
        click.echo(f"running {line(shlex.join(settings.target.words))} in {line(str(settings.cwd))}", err=True)
        again = execute_quietly(settings, partial(Auditor, settings, LocalLauncher()))
        there = advice.shown(settings.out)
        if again.groups[0].first_finished is None:
            yield f"rerun: {name or 'the run'} failed: {there}"
            continue
        sides = load(str(results / name), group.recipe.name), load(str(settings.out))
        ours, theirs = (side.recording for side in sides)
        comparison = compare(ours, theirs, names=("the archive", there), command=(), warnings=())
        if comparison.verdict is not ComparisonVerdict.IDENTICAL:
            first = comparison.first_difference
            where = f" {first.where()}" if first is not None else ""
            yield f"rerun: {comparison.verdict}{where}: {there}"


def _settings(checked: Verified, audit: Audit, group: Group, typed: Sequence[str], python: str | None) -> Settings:
    """Return the settings of one run of the user's tree. Raises UsageError for a command that nobody typed."""
    words = audit.target
    module = words[1] if len(words) > 1 and words[0] == "-m" else ""
    script = words[0] if words and words[0].endswith(".py") else ""
    if typed and tuple(typed) != tuple(words):
        raise UsageError(f"the archive is of another command: {shlex.join(words)}", "Type that one after `--`.")
    own = f"{module.replace('.', '/')}.py" if module else script
    known = {one.name for one in checked.used.code}
    if not typed and (not own or not {own, f"{own[:-3]}/__main__.py"} & known or Path(own).is_absolute()):
        hint = f"Read it; if it may run here, type it: detaudit verify FILE --rerun -- {shlex.join(words)}"
        raise UsageError("the command of the archive is no script or module of this project", hint)
    catalogue = load_catalogue()
    flags = tuple(catalogue.get(name) for name in group.recipe.flags)
    recipe = Recipe(name=group.recipe.name, seed=group.recipe.seed, flags=flags)
    stages = tuple(one for one in wire.STAGES if one in group.stages) or wire.DEFAULT_STAGES
    rest = words[2:] if module else words[1:] if script else words
    options: dict[str, Any] = {
        **values_of(RunOptions()),
        "stages": tuple(dict.fromkeys((*wire.DEFAULT_STAGES, *stages))),
    }
    resolved = {"words": (script,) if script else (), "module": module, "python": python, "out": None}
    return replace(settings_of(tuple(rest), (recipe,), 1, **{**options, **resolved}), command=words)
