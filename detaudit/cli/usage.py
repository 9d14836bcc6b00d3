"""Usage errors of click, in the style of all other errors."""

import re
import shlex
from collections.abc import Sequence

import click

from detaudit.errors import UsageError

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


def error(exception: click.ClickException, arguments: Sequence[str] = ()) -> UsageError:
    """Return the error with what is wrong, and the option or command that was meant if one is near.

    ``arguments`` is the command line: options of the script belong behind ``--``.
    """
    ctx = exception.ctx if isinstance(exception, click.UsageError) else None
    match exception:
        case click.NoSuchOption():
            return _no_such_option(exception, ctx, arguments)
        case click.MissingParameter():
            kind = "option" if isinstance(exception.param, click.Option) else "argument"
            return UsageError(f"missing {kind} {_name(exception.param)}".rstrip(), _usage(ctx))
        case click.BadParameter():
            return _bad_value(exception, ctx)
        case _:
            return UsageError(_ours(exception.format_message()), _usage(ctx))


def _no_such_option(option: click.NoSuchOption, ctx: click.Context | None, arguments: Sequence[str]) -> UsageError:
    from detaudit.config.yamlfile import nearest  # --help has to answer without it

    options = [name for param in ctx.command.get_params(ctx) for name in param.opts] if ctx is not None else []
    known = {name.lstrip("-"): name for name in options}  # dashes make all options alike
    near = known.get(nearest(option.option_name.lstrip("-"), known), "")
    hints = [f"Did you mean {near!r}?"] if near else []
    if ctx is not None and any(param.name == _AFTER_DASHES for param in ctx.command.params):
        hints.append(_after_dashes(option.option_name, () if near else arguments))
    return UsageError(f"unknown option {option.option_name!r}", " ".join([*hints, _help(ctx)]).rstrip())


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

    hint = _help(ctx)
    param = parameter.param
    choices = param.type.choices if param is not None and isinstance(param.type, click.Choice) else ()
    word = parameter.message.split("'")[1] if choices and parameter.message.startswith("'") else ""
    near = nearest(word, map(str, choices))
    if near:
        hint = f"Did you mean {near!r}? {hint}"
    return UsageError(f"invalid {_name(param)}: {_ours(parameter.message)}", hint)


def _name(param: click.Parameter | None) -> str:
    """Return how the user knows a parameter: ``--runs``, ``DIR``."""
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return param.human_readable_name if param is not None else "value"


def _ours(message: str) -> str:
    """Return a message of click as ours are: it starts in lower case and has no period."""
    for theirs, ours in _WORDINGS:
        message = re.sub(theirs, ours, message)
    return (message[:1].lower() + message[1:]).rstrip(".")


def _usage(ctx: click.Context | None) -> str:
    return " ".join(click.unstyle(ctx.get_usage()).split()) if ctx is not None else _help(ctx)


def _help(ctx: click.Context | None) -> str:
    return f"Run `{ctx.command_path if ctx is not None else 'detaudit'} --help` for all options."
