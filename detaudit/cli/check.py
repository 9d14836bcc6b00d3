"""``detaudit check``: compare the audits of a project with their baselines."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from detaudit import advice, store
from detaudit.against.commits import Commit, resolve
from detaudit.check import Checker, CheckRequest
from detaudit.cli import completion
from detaudit.cli.engine import engine_runs, refuse_evidence, refuse_jobs, refuse_spread
from detaudit.cli.execute import Shown, execute, keep_evidence, print_python
from detaudit.cli.help import Command
from detaudit.cli.options import (
    RUNS,
    against_option,
    declared,
    engine_option,
    format_option,
    jobs_options,
    option,
    out_option,
    quiet_option,
    spread_option,
    verbose_option,
)
from detaudit.cli.settings import command_line, jobs_of, new_results, refuse_unfinished
from detaudit.config import choice, project
from detaudit.config.flags import Catalogue, load_catalogue
from detaudit.config.options import values_of
from detaudit.config.project import NamedAudit
from detaudit.config.recipes import Recipe, load_recipe
from detaudit.errors import UsageError
from detaudit.launch import Launcher
from detaudit.launch.local import LocalLauncher
from detaudit.launch.plan import Settings
from detaudit.launch.slots import Jobs
from detaudit.launch.target import Target, resolve_target
from detaudit.model import Check, GateName, to_json
from detaudit.runner import Observer
from detaudit.store import LOCK

_FILE, _FILES = click.Path(dir_okay=False, path_type=Path), "Files"


_GATES = "Gates"
_EXAMPLES = (
    ("run all audits of the project, as in CI", "detaudit check"),
    ("write the baselines of one of them, to be committed", "detaudit check digits --update"),
    ("ask only whether the runs match", "detaudit check --gate repeatable"),
    ("a pull request: does it change any training?", "detaudit check --against merge-base"),
    ("be surer: more runs of each audit", "detaudit check --runs 20"),
    ("several runs of an audit at once", "detaudit check --jobs 2"),
    ("on other machines", "detaudit check --engine ssh:node1,node2"),
    ("a report for a CI system", "detaudit check --format junit > detaudit.xml"),
)


@click.command(cls=Command, options_metavar="[OPTIONS]", examples=_EXAMPLES)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.audits)
@option("--update", group=_GATES, is_flag=True, help="Write new baselines from these runs and list what changed.")
@option("--force", group=_GATES, is_flag=True,
        help="With --update: write a baseline also if runs of the same code differed in an earlier audit.")  # fmt: skip
@option("--gate", "gates", group=_GATES, multiple=True, type=click.Choice([gate.option for gate in GateName]),
        metavar="GATE", help="Run only this gate. Repeatable. [default: all]")  # fmt: skip
@against_option("Also compare the working tree with this commit; merge-base is where this branch began.", _GATES)
@option("--config", group=_FILES, type=_FILE, metavar="FILE",
        help="File that defines the audits. [default: detaudit.yaml, or [tool.detaudit] in "
        "pyproject.toml]")  # fmt: skip
@option("--lock", group=_FILES, type=_FILE, default=LOCK, show_default=True, metavar="FILE",
        help="Baseline file; commit it.")  # fmt: skip
@option("--runs", group=RUNS, type=click.IntRange(1), metavar="N",
        help="Number of runs of each audit. [default: those of its configuration, or 3]")  # fmt: skip
@declared("history")
@jobs_options
@engine_option
@spread_option
@out_option
@declared("evidence")
@format_option()
@quiet_option
@verbose_option
def command(
    names: tuple[str, ...],
    update: bool,
    force: bool,
    runs: int | None,
    gates: tuple[str, ...],
    history: bool,
    against: str | None,
    config: Path | None,
    lock: Path,
    jobs: int | None,
    devices: tuple[str, ...],
    engine: str | None,
    spread: bool,
    out: Path | None,
    evidence: Path | None,
    format_: str,
    quiet: bool,
    verbose: bool,
) -> int:
    """Run this project's audits, or only those with a NAME, and compare them with their baselines.

    Gates: repeatable (all runs match), baseline (same as baseline), resume (same after resume), commit (same as the
    commit that --against names).

    Exit status: 0 all passed, 1 one failed, 125 inconclusive.
    """
    mark, folder = new_results(out)
    if force and not update:
        raise UsageError("--force was given without --update", "Add --update, or leave it out.")
    defined = project.read(config or project.find(Path()))
    audits = _gated(project.select(defined, names), gates, update)
    commit = _commit(against, gates, alone=engine is None and jobs == 1)
    if runs is not None:
        audits = {name: msgspec.structs.replace(audit, runs=runs) for name, audit in audits.items()}
    catalogue = load_catalogue()
    requests = [
        replace(
            _request(
                name, audit, catalogue, folder, mark, jobs_of(jobs, devices, audit.runs), evidence, here=engine is None
            ),
            against=commit,
        )
        for name, audit in audits.items()
    ]
    requests = [one if history else one.without_history() for one in requests]

    print_python([request.settings.target for request in requests], quiet)

    def check(requests: Sequence[CheckRequest], launcher: Launcher) -> int:
        def make_job(observer: Observer) -> Checker:
            words, baselines = command_line(), lock.resolve()
            return Checker(requests, words, folder, baselines, update, launcher, observer, force=force, defined=defined)

        def save(check: Check) -> None:
            store.write(folder / store.CHECK, to_json(check))

        def then(check: Check) -> None:
            keep_evidence(requests[0].settings, check, folder)

        return execute(mark, make_job, save, out=folder, shown=Shown(format_, quiet, verbose), then=then)

    refuse_spread(spread, engine)
    if engine is None:
        return check(requests, LocalLauncher())
    refuse_jobs(jobs, devices)
    refuse_evidence(evidence)
    return engine_runs().check(requests, engine, check, spread=spread)


def _commit(against: str | None, gates: Sequence[str], *, alone: bool) -> Commit | None:
    """Return the commit that ``against`` names, None if that gate is left out. Raises UsageError if it is none."""
    if against is None:
        if GateName.COMMIT.option in gates:
            raise UsageError("--gate commit needs the commit", "Name it: --against HEAD.")
        return None
    if not alone:
        raise UsageError("--against does one run after another on this machine", "Leave out --jobs or --engine.")
    return resolve(Path.cwd(), against) if not gates or GateName.COMMIT.option in gates else None


def _gated(audits: dict[str, NamedAudit], gates: Sequence[str], update: bool) -> dict[str, NamedAudit]:
    """Return the audits without gates that were not requested; the runs must match in any case.

    Raises UsageError for a gate that no audit has.
    """
    if not gates:
        return audits
    baseline, resume = (gate.option in gates for gate in (GateName.BASELINE, GateName.RESUME))
    if update and not baseline:
        raise UsageError("--update writes baselines, but --gate leaves them out", "Add --gate baseline.")
    if baseline and not any(audit.baseline for audit in audits.values()):
        raise UsageError("no audit has the gate baseline", "Set `baseline = true` in its configuration.")
    if resume and not any(audit.resume for audit in audits.values()):
        raise UsageError("no audit has the gate resume", "Set `resume` in its configuration to a command that resumes.")
    return {
        name: msgspec.structs.replace(
            audit, baseline=audit.baseline and baseline, resume=audit.resume if resume else None
        )
        for name, audit in audits.items()
    }


def _request(
    name: str,
    audit: NamedAudit,
    catalogue: Catalogue,
    out: Path,
    mark: str,
    jobs: Jobs,
    evidence: Path | None,
    *,
    here: bool,
) -> CheckRequest:
    """Return an audit of the project as the checker takes it. An error names the audit that it is in."""
    try:
        recipe = load_recipe(
            audit.recipe,
            catalogue,
            devices=choice.devices(),
            seed=audit.seed,
            add=audit.flags,
            remove=audit.no_flags,
        )
        settings = replace(_settings(audit, recipe, out / name, mark, jobs, here=here), evidence=evidence)
        run = advice.command(settings, "--runs", str(audit.runs), *recipe.options)
        return CheckRequest(
            name=name,
            audit=audit,
            settings=replace(settings, command=tuple(shlex.split(run))),
            resume=_target(audit.resume, audit.python, here=here) if audit.resume else None,
            stop=_target(audit.stop, audit.python, here=here) if audit.stop else None,
        )
    except UsageError as error:
        raise type(error)(f"audit {name!r}: {error.message}", error.hint) from error


def _settings(audit: NamedAudit, recipe: Recipe, out: Path, mark: str, jobs: Jobs, *, here: bool) -> Settings:
    options = audit.options()
    if options.until is not None and audit.resume is not None:
        raise UsageError(
            "until cannot be combined with resume: that gate compares how runs end", "Make them two audits."
        )
    refuse_unfinished(options)
    return Settings(
        **{**values_of(options), "isolate": options.isolate or jobs.apart},
        target=_target(audit.command, audit.python, here=here),
        recipes=(recipe,),
        runs=audit.runs,
        out=out,
        mark=mark,
        cwd=Path(os.getcwd()),
        jobs=jobs,
        env=audit.env,
    )


def _target(command: project.Command, python: str | None, *, here: bool) -> Target:
    words, after_dashes, module = project.words(command)
    return resolve_target(words, after_dashes, module, python, here=here)
