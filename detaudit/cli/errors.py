"""How errors look on stderr."""

import os
import tempfile
import traceback
from pathlib import Path

import click

from detaudit import __version__, redact
from detaudit.errors import DetauditError, NothingToCompareError

_PACKAGE = Path(__file__).parents[1]


def color() -> bool | None:
    """Return False if NO_COLOR is set and not empty (https://no-color.org), None to decide by the terminal."""
    return False if os.environ.get("NO_COLOR") else None


def print_error(error: DetauditError) -> None:
    """Print the message of an error, and its hint below."""
    # --help has to answer without loading what reports need.
    from detaudit.report.plain import plain

    message = plain(redact.text(error.message) + _why(error))
    click.echo(f"{click.style('error:', fg='red')} {message}", err=True, color=color())
    if error.hint:
        hint = plain(redact.text(error.hint))
        click.echo(f"  {click.style('hint:', fg='cyan')} {hint}", err=True, color=color())


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
    from detaudit.report.messages import problems

    reasons = [problems.reason(one) for one in error.facts if isinstance(one, Reason)]
    errors = [problems.error(one) for one in error.facts if isinstance(one, RunError)]
    return f": {'; '.join((*reasons, *errors))}"
