"""Run an audit or a check, save its report and print it."""

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from detaudit import store
from detaudit.cli.errors import print_error
from detaudit.cli.output import print_python, print_report
from detaudit.cli.progress import ProgressLine
from detaudit.errors import StorageError
from detaudit.launch.plan import Settings
from detaudit.launch.processes import Reaper, shielded
from detaudit.model import Audit, Check, exit_code
from detaudit.runner import Observer

R = TypeVar("R", bound=Audit | Check, covariant=True)


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
) -> int:
    """Do a job, save and print its report, and return the exit status; all its processes carry ``mark``."""
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
    return execute(settings.mark, make_job, lambda report: store.save(out, report), out=out, shown=shown)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
