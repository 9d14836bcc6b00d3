"""Carries an audit or a check out to its printed end."""

import signal
import sys
from collections.abc import Callable
from typing import Protocol, TypeVar

from detaudit.auditor import store
from detaudit.auditor.runs.observer import Observer
from detaudit.cli.output import lament, tell
from detaudit.cli.progress import ProgressLine
from detaudit.errors import StorageError
from detaudit.launch.plan import Settings
from detaudit.launch.processes import Reaper
from detaudit.model import Audit, Check, exit_code

R = TypeVar("R", bound=Audit | Check, covariant=True)


class Story(Protocol[R]):
    """A report that can be carried out, and told as far as it got."""

    def run(self) -> R:
        """Carry it out."""

    def result(self, interrupted: bool = False) -> R:
        """Return it as it stands."""


def carry_out(
    mark: str, story: Callable[[Observer], Story[R]], save: Callable[[R], None], *, format_: str, quiet: bool
) -> int:
    """Carry a report out, keep and print it, and return the exit status; ``mark`` is on all its processes."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _interrupt)
    with ProgressLine(quiet or not sys.stderr.isatty()) as progress, Reaper(mark):
        told = story(progress)
        try:
            report = told.run()
        except KeyboardInterrupt:
            report = told.result(interrupted=True)
    try:
        save(report)
    except StorageError as error:  # the result is still printed
        lament(error)
    tell(report, format_)
    return exit_code(report)


def audit(settings: Settings, story: Callable[[Observer], Story[Audit]], *, format_: str, quiet: bool) -> int:
    """Carry out an audit of one target; see carry_out."""
    return carry_out(settings.mark, story, lambda told: store.save(settings.out, told), format_=format_, quiet=quiet)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
