"""Do a job with a progress line, save its report, and print it."""

import os
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import click

from detaudit import advice, store
from detaudit.cli.errors import print_error
from detaudit.cli.progress import ProgressLine
from detaudit.cli.screen import width
from detaudit.errors import StorageError
from detaudit.judge.figures import figures
from detaudit.launch.plan import Settings
from detaudit.launch.processes import Reaper, shielded
from detaudit.launch.target import Target, pytest_without_plugin
from detaudit.model import Audit, Check, Comparison, Report, exit_code
from detaudit.model.figures import NO_FIGURES
from detaudit.report import DRAWN, render
from detaudit.report.plain import line
from detaudit.runner import Observer

# Print what an audit runs with, and finished reports, also to the step summary of GitHub Actions.


_SUMMARY = "GITHUB_STEP_SUMMARY"


def rendered(report: Report, format_: str, folder: Path | None, width: int | None = None) -> str:
    """Return a report in a format, with the figures of the event logs in its results folder.

    ``width`` is that of the terminal, if it is printed on one.
    """
    report_figures = figures(report, folder) if format_ in DRAWN else NO_FIGURES
    return render(report, format_, report_figures, width)


def print_python(targets: Iterable[Target], quiet: bool) -> None:
    """Print on stderr which Python runs the training if it is neither detaudit's own nor named by the user.

    Print as well if that is a pytest without the plugin, which passes every test that has its mark.
    """
    targets = () if quiet else tuple(targets)
    for python in dict.fromkeys(filter(None, (pytest_without_plugin(target.arguments) for target in targets))):
        click.echo(
            f"the pytest of {line(advice.shown(Path(python)))} has no detaudit: it does not audit tests with "
            "@pytest.mark.deterministic. Install detaudit there, and let pytest refuse unknown marks: --strict-markers",
            err=True,
        )
    for python in dict.fromkeys(target.python for target in targets if target.python_found):
        click.echo(f"training with {line(advice.shown(Path(python)))}; --python selects a different one", err=True)


def print_report(report: Report, format_: str, folder: Path | None = None) -> None:
    """Print a report; in the format ``github``, also append it as Markdown to the step summary.

    A summary that cannot be written is an error on stderr that does not change the exit status.
    """
    click.echo(rendered(report, format_, folder, width()), nl=False)
    summary = os.environ.get(_SUMMARY)
    if format_ != "github" or not summary:
        return
    try:
        store.append(Path(summary), render(report, "markdown").encode(errors="backslashreplace"))
    except StorageError as error:
        print_error(error)


# Run an audit or a check, save its report and print it.


R = TypeVar("R", bound=Audit | Check | Comparison, covariant=True)


@dataclass(frozen=True)
class Shown:
    """How a command shows what it does: the format of its report, and what it prints on stderr until then."""

    format_: str
    quiet: bool = False
    verbose: bool = False


class Job(Protocol[R]):
    """Work that produces a report, after an interruption too: of what it finished before."""

    def run(self) -> R:
        """Do the work and return its report."""

    def result(self, interrupted: bool = False) -> R:
        """Return the report so far."""


def execute(
    mark: str,
    make_job: Callable[[Observer], Job[R]],
    save: Callable[[R], None],
    *,
    out: Path,
    shown: Shown,
    then: Callable[[R], None] | None = None,
) -> int:
    """Do a job, save and print its report, and return the exit status; all its processes carry ``mark``.

    ``then`` gets a report that was not interrupted, after it was printed.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP, and so does the audit
            signal.signal(number, _interrupt)
    with ProgressLine(shown.quiet, verbose=shown.verbose) as progress, Reaper(mark, out):
        job = make_job(progress)
        try:
            report = job.run()
        except KeyboardInterrupt:
            with shielded():
                report = job.result(interrupted=True)
                _attempt(lambda: save(report))
        else:
            _attempt(lambda: save(report))
    print_report(report, shown.format_, out)
    if then is not None and not report.interrupted:
        then(report)
    return exit_code(report)


def _attempt(save: Callable[[], None]) -> None:
    try:
        save()
    except StorageError as error:  # The report is still printed.
        print_error(error)


def audit(settings: Settings, make_job: Callable[[Observer], Job[Audit]], shown: Shown) -> int:
    """Audit one target and return the exit status; see execute."""
    out = settings.out
    print_python([settings.target], shown.quiet)
    return execute(
        settings.mark,
        make_job,
        lambda report: store.save(out, report),
        out=out,
        shown=shown,
        then=lambda report: keep_evidence(settings, report, out),
    )


def execute_quietly(settings: Settings, make_job: Callable[[Observer], Job[Audit]]) -> Audit:
    """Audit one target with a progress line, and return what is known at its end, or at an interruption."""
    with ProgressLine(False) as progress, Reaper(settings.mark, settings.out):
        report = make_job(progress).run()
    store.save(settings.out, report)
    return report


def keep_evidence(settings: Settings, report: Audit | Check, out: Path) -> None:
    """Write the archive that --evidence asks for, of results in ``out``. Raises StorageError if that fails."""
    if settings.evidence is None:
        return
    from detaudit.evidence import materials, pack  # which few need, and which takes long to import

    target = settings.target
    python = "" if target.is_command else target.python
    used, diff = materials.collect(report, out, settings.cwd, python, settings.file_budget)
    materials.save(out, used, diff)
    pack.of_results(settings.evidence, report, out, settings.cwd)
    click.echo(f"evidence: {line(advice.shown(settings.evidence))}", err=True)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
