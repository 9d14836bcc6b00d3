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
from detaudit.cli.options import TargetCommand, format_option, option, python_option
from detaudit.cli.screen import width
from detaudit.cli.settings import settings_of
from detaudit.compare import compare
from detaudit.config.flags import load_catalogue
from detaudit.config.options import RunOptions, values_of
from detaudit.config.recipes import Recipe
from detaudit.errors import UsageError
from detaudit.evidence import materials, pack
from detaudit.evidence.changes import Change, CodeAdded, changes
from detaudit.evidence.statement import judge
from detaudit.evidence.verification import FORMATS, Rerun, Verification, code_changed
from detaudit.evidence.verify import Verified, unpacked, verify
from detaudit.launch.local import LocalLauncher
from detaudit.launch.plan import Settings
from detaudit.model import Audit, Group, Verdict
from detaudit.model.fact import shortened
from detaudit.notebooks.cells import SCRIPTS
from detaudit.report.plain import line
from detaudit.report.terminal import filled

_EXAMPLES = (
    ("is it as it was written, and what has changed since?", "detaudit verify audit.zip"),
    ("far from the project: the archive alone", "detaudit verify audit.zip --archive-only"),
    ("does the project still give the same result?", "detaudit verify audit.zip --rerun"),
    ("for a program", "detaudit verify audit.zip --format json"),
)


@click.command(cls=TargetCommand, options_metavar="[OPTIONS]", examples=_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE [-- COMMAND]...",
                shell_complete=completion.files)  # fmt: skip
@option("--archive-only", group="What is checked", is_flag=True,
        help="Do not compare the code, the data, the packages and the machine with those here.")  # fmt: skip
@option("--rerun", group="What is checked", is_flag=True,
        help="Run the training of this folder once, and compare it with the first run of the archive.")  # fmt: skip
@python_option
@format_option(FORMATS)
def command(
    file: Path,
    archive_only: bool,
    rerun: bool,
    python: str | None,
    format_: str,
    after_dashes: tuple[str, ...],
) -> int:
    """Check an archive of evidence: its hashes, its statement, and its verdict, judged again from its logs.

    Lists what has changed since in the working directory: code, data, packages, commit and machine. No code of
    the archive is ever run.

    Exit status: 0 all right, 1 something was edited, has changed or differs, 2 not an archive, 125 a rerun failed.
    """
    if archive_only and rerun:
        message = "--archive-only looks at the archive alone, and --rerun runs the training of this folder"
        raise UsageError(message, "Leave one of them out.")
    if after_dashes and not rerun:
        raise UsageError("a command after `--` is for --rerun", "Add --rerun, or leave the command out.")
    with unpacked() as folder:
        checked = verify(file, Path(folder))
        changed = () if archive_only else tuple(changes(checked.used, checked.report, Path.cwd(), python or ""))
        reruns = _Reruns(checked, Path(folder) / pack.RESULTS, changed, after_dashes, python) if rerun else None
        shown = tuple(reruns.all()) if reruns is not None else None
    added = () if reruns is None else tuple(CodeAdded(name=name) for name in sorted(reruns.added))
    verification = Verification(
        file=str(file),
        verdict=checked.report.verdict,
        detaudit=judge(checked.report, checked.used),
        edited=tuple(checked.edited),
        changed=None if archive_only else (*changed, *added),
        reruns=shown,
        not_judged_again=tuple(checked.taken),
        not_hashed=checked.used.unhashed,
    )
    if format_ == "json":
        click.echo(verification.to_json(), nl=False)
    else:
        for text in verification.lines():
            click.echo(filled(line(text), width()))
    return verification.exit_code


# Run the user's tree again.


class _Reruns:
    """Runs each audit of an archive once in the working directory; ``added`` are source files that are new to it."""

    def __init__(
        self, checked: Verified, results: Path, changed: tuple[Change, ...], typed: Sequence[str], python: str | None
    ) -> None:
        self._checked, self._results, self._changed = checked, results, changed
        self._typed, self._python = typed, python
        self.added: set[str] = set()

    def all(self) -> Iterator[Rerun]:
        """Yield what each run shows. Raises UsageError if the archive does not say what to run."""
        audits = materials.audits(self._checked.report)
        if self._checked.edited:
            raise UsageError("the archive was edited, so it does not say what to compare with", "Leave --rerun out.")
        if not audits or any(type(audit) is not Audit for audit in audits.values()):
            raise UsageError("--rerun needs an archive of `detaudit run` or `detaudit check`", "Leave --rerun out.")
        for name, audit in audits.items():
            yield self._one(name, audit)

    def _one(self, name: str, audit: Audit) -> Rerun:
        group = next((one for one in audit.groups if one.first_finished is not None), None)
        if group is None:
            raise UsageError("no run of the archive finished, so there is nothing to compare with", "Leave it out.")
        settings = _settings(self._checked, audit, group, self._typed, self._python)
        code = {one.name for one in self._checked.used.code if one.name in audit.code or one.name in audit.target}
        changed = code_changed(self._changed, code)
        differs = f": its code is not that of the archive: {shortened(changed, most=5)}" if changed else ""
        running = f"running {shlex.join(settings.target.words)} in {settings.cwd}{differs}"
        click.echo(line(running), err=True)
        again = execute_quietly(settings, partial(Auditor, settings, LocalLauncher()))
        there, verdict, difference = advice.shown(settings.out), None, None
        if again.groups[0].first_finished is not None:
            sides = load(str(self._results / name), group.recipe.name), load(str(settings.out))
            ours, theirs = (side.recording for side in sides)
            comparison = compare(ours, theirs, names=("the archive", there), command=(), warnings=())
            verdict, difference = comparison.verdict, comparison.first_difference
        self.added |= {*again.code} - {*audit.code} - code
        return Rerun(
            audit=name,
            command=tuple(audit.target),
            folder=there,
            code_changed=changed,
            archive_repeats=group.verdict is not Verdict.NONDETERMINISTIC,
            verdict=verdict,
            first_difference=difference,
        )


def _settings(checked: Verified, audit: Audit, group: Group, typed: Sequence[str], python: str | None) -> Settings:
    """Return the settings of one run of the user's tree. Raises UsageError for a command that nobody typed."""
    words = audit.target
    module = words[1] if len(words) > 1 and words[0] == "-m" else ""
    script = words[0] if words and words[0].endswith(SCRIPTS) else ""
    if typed and tuple(typed) != tuple(words):
        raise UsageError(f"the archive is of another command: {shlex.join(words)}", "Type that one after `--`.")
    folder = module.replace(".", "/")
    own = {f"{folder}.py", f"{folder}/__main__.py"} if module else {script}
    known = {one.name for one in checked.used.code if not Path(one.name).is_absolute()}
    if not typed and not own & known:
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
