"""Errors on stderr: what is wrong, in our words also where click found it, and the cure."""

import os
import re
import shlex
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


_WORDINGS = (
    (r"is not in the range x>=(\S+)\.", r"is not at least \1"),
    (r"is not in the range x>(\S+)\.", r"is not above \1"),
    (r"is not in the range (\S+?)<=?x<=?(\S+)\.", r"is not between \1 and \2"),
    (r"is not a valid (\w+) range\.", r"is not a valid \1"),
    (r"^Option '(\S+)' requires an argument\.", r"\1 needs a value"),
    (r"^Got unexpected extra argument \((.+)\)", r"unexpected argument '\1'"),
    (r"^Got unexpected extra arguments \((.+)\)", r"unexpected arguments: \1"),
)
"""How click says what is wrong, and how detaudit does."""

_AFTER_DASHES = "words"
"""The parameter of commands that run a script, whose own arguments follow ``--``."""


def usage_error(exception: click.ClickException, arguments: Sequence[str] = ()) -> UsageError:
    """Return the error with what is wrong, and the option or command that was meant if one is near.

    ``arguments`` is the command line: options of the script belong behind ``--``.
    """
    ctx = exception.ctx if isinstance(exception, click.UsageError) else None
    match exception:
        case click.NoSuchOption():
            return _no_such_option(exception, ctx, arguments)
        case click.MissingParameter():
            kind = "option" if isinstance(exception.param, click.Option) else "argument"
            return UsageError(f"missing {kind} {_parameter_name(exception.param)}".rstrip(), _usage_of(ctx))
        case click.BadParameter():
            return _bad_value(exception, ctx)
        case _:
            return UsageError(_ours(exception.format_message()), _usage_of(ctx))


def _no_such_option(option: click.NoSuchOption, ctx: click.Context | None, arguments: Sequence[str]) -> UsageError:
    from detaudit.config.yamlfile import nearest  # --help has to answer without it

    options = [name for param in ctx.command.get_params(ctx) for name in param.opts] if ctx is not None else []
    known = {name.lstrip("-"): name for name in options}  # dashes make all options alike
    near = known.get(nearest(option.option_name.lstrip("-"), known), "")
    hints = [f"Did you mean {near!r}?"] if near else []
    if ctx is not None and any(param.name == _AFTER_DASHES for param in ctx.command.params):
        hints.append(_after_dashes(option.option_name, () if near else arguments))
    return UsageError(f"unknown option {option.option_name!r}", " ".join([*hints, _help_of(ctx)]).rstrip())


def _after_dashes(option: str, arguments: Sequence[str]) -> str:
    """Return where arguments of the script go, as the command that was meant if the script is before the option."""
    at = next((index for index, word in enumerate(arguments) if word.partition("=")[0] == option), len(arguments))
    script = next((index for index in range(1, at) if not arguments[index].startswith("-")), None)
    if script is None or at == len(arguments) or "--" in arguments:
        return "Arguments of the script follow `--`."
    words = ("detaudit", *arguments[:at], "--", *arguments[at:])
    return f"Arguments of the script follow `--`: `{shlex.join(words)}`."


def _bad_value(parameter: click.BadParameter, ctx: click.Context | None) -> UsageError:
    from detaudit.config.yamlfile import nearest

    hint = _help_of(ctx)
    param = parameter.param
    choices = param.type.choices if param is not None and isinstance(param.type, click.Choice) else ()
    word = parameter.message.split("'")[1] if choices and parameter.message.startswith("'") else ""
    near = nearest(word, map(str, choices))
    if near:
        hint = f"Did you mean {near!r}? {hint}"
    return UsageError(f"invalid {_parameter_name(param)}: {_ours(parameter.message)}", hint)


def _parameter_name(param: click.Parameter | None) -> str:
    """Return how the user knows a parameter: ``--runs``, ``DIR``."""
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return param.human_readable_name if param is not None else "value"


def _ours(message: str) -> str:
    """Return a message of click as ours are: it starts in lower case and has no period."""
    for theirs, ours in _WORDINGS:
        message = re.sub(theirs, ours, message)
    return (message[:1].lower() + message[1:]).rstrip(".")


def _usage_of(ctx: click.Context | None) -> str:
    return " ".join(click.unstyle(ctx.get_usage()).split()) if ctx is not None else _help_of(ctx)


def _help_of(ctx: click.Context | None) -> str:
    return f"Run `{ctx.command_path if ctx is not None else 'detaudit'} --help` for all options."
