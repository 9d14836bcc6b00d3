"""How errors look on stderr: what is wrong, where, and what to do."""

import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from detaudit import __version__, redact
from detaudit.cli.screen import color, width
from detaudit.errors import DetauditError, NothingToCompareError, UsageError

_PACKAGE = Path(__file__).parents[1]


def print_error(error: DetauditError, arguments: Sequence[str] = ()) -> None:
    """Print the message of an error, below it the words or the line that it is about, then its hint."""
    # --help has to answer without loading what reports need.
    from detaudit.cli import pointer
    from detaudit.report.plain import plain
    from detaudit.report.terminal import filled

    columns = width(sys.stderr)
    message = plain(redact.text(error.message) + _why(error))
    title = f"{click.style('error:', fg='red', bold=True)} {message}"
    lines = [filled(line, columns) for line in title.split("\n")]
    if isinstance(error, UsageError):
        words = redact.command(("detaudit", *arguments))
        lines += pointer.in_file(message, columns) or pointer.pointed_lines(message, words, columns)
    if error.hint:
        hint = f"{click.style('hint:', fg='cyan')} {plain(redact.text(error.hint))}"
        lines += [filled(line, columns, "  ") for line in hint.split("\n")]
    click.echo("\n".join(lines), err=True, color=color())


def print_internal_error(error: Exception) -> None:
    """Print where detaudit failed, and the file to which the traceback was saved."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(_PACKAGE)
    ]
    where = f" ({Path(frames[-1].filename).relative_to(_PACKAGE)}:{frames[-1].lineno})" if frames else ""
    what = " ".join(traceback.format_exception_only(error)[-1].split())[:300]
    saved = _save("".join(traceback.format_exception(error)))
    hint = f"This is a bug in detaudit {__version__}: please report it{f' with {saved}' if saved else ''}."
    print_error(DetauditError(f"internal error: {what}{where}", hint))


def _save(text: str) -> str:
    """Return the temporary file with this text, "" if there is no room for it."""
    try:
        number, path = tempfile.mkstemp(prefix="detaudit-error-", suffix=".txt")
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(redact.text(text))
    except OSError:
        return ""
    return path


def _why(error: DetauditError) -> str:
    """Return why there is nothing to compare, ``""`` for any other error."""
    if not isinstance(error, NothingToCompareError) or not error.facts:
        return ""
    # The command line imports this module for every command, and --help has to answer without loading the model.
    from detaudit.model.problems import Reason, RunError

    reasons = [one.text() for one in error.facts if isinstance(one, Reason)]
    errors = [one.text() for one in error.facts if isinstance(one, RunError)]
    return f": {'; '.join((*reasons, *errors))}"
