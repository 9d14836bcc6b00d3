"""Commands whose help has its options in groups, and examples at its end."""

from collections.abc import Sequence
from typing import Any

import click

DEFAULT_GROUP = "Options"
_WIDEST = 30
"""The longest option whose help stands beside it."""

Examples = Sequence[tuple[str, str]]
"""Commands, each after what it does."""


class Option(click.Option):
    """An option of a ``group``, the heading that it is listed under."""

    def __init__(self, *args: Any, group: str = DEFAULT_GROUP, **options: Any) -> None:
        super().__init__(*args, **options)
        self.group = group

    def get_help_extra(self, ctx: click.Context) -> Any:
        """See click.Option.get_help_extra. A range such as x>=1 says little; an error says it where it matters."""
        return {name: text for name, text in super().get_help_extra(ctx).items() if name != "range"}


class _Formatter(click.HelpFormatter):
    """Writes headings in bold, which is left out where there are no colors."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, click.style(prefix or "Usage:", bold=True) + " ")

    def write_heading(self, heading: str) -> None:
        super().write_heading(click.style(heading, bold=True))


class _Context(click.Context):
    formatter_class = _Formatter


class Command(click.Command):
    """A command with ``examples``."""

    context_class = _Context

    def __init__(self, *args: Any, examples: Examples = (), **options: Any) -> None:
        super().__init__(*args, **options)
        self.examples = examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See click.Command.format_options."""
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See click.Command.format_epilog."""
        _write_examples(self.examples, formatter)


class Group(click.Group):
    """A group of commands with ``examples``."""

    context_class = _Context

    def __init__(self, *args: Any, examples: Examples = (), **options: Any) -> None:
        super().__init__(*args, **options)
        self.examples = examples

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See click.Group.resolve_command. Raises UnknownNameError for a command that does not exist."""
        if not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            from detaudit.config.yamlfile import unknown  # --help has to answer without it

            raise unknown("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See click.Group.format_options."""
        self.format_commands(ctx, formatter)
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See click.Group.format_epilog."""
        _write_examples(self.examples, formatter)


def _write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the options by their groups, in the order in which these begin; --help is in the last one."""
    groups: dict[str, list[tuple[str, str]]] = {}
    last = DEFAULT_GROUP
    for option in command.get_params(ctx):
        record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
        if record is not None:
            last = option.group if isinstance(option, Option) else last
            groups.setdefault(last, []).append(record)
    names = [name for records in groups.values() for name, _ in records if len(name) <= _WIDEST]
    size = max(map(len, names), default=0)
    for group, records in groups.items():
        with formatter.section(group):
            formatter.write_dl([(f"{name:<{size}}", text) for name, text in records], col_max=_WIDEST)


def _write_examples(examples: Examples, formatter: click.HelpFormatter) -> None:
    if not examples:
        return
    with formatter.section("Examples"):
        space = " " * formatter.current_indent
        for does, command in examples:
            lines = [f"{space}# {does}"] if does else []
            formatter.write("\n".join([*lines, _fitted(command, formatter.width, space), ""]))


def _fitted(command: str, width: int, space: str) -> str:
    """Return a command in lines that fit."""
    if len(space + command) <= width:
        return space + command
    from detaudit.report.terminal import command as broken  # --help has to answer without it

    return broken(command, width, space)
