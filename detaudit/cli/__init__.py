"""The command line. The only place that turns errors into text and exit codes."""

import importlib
import sys
from typing import cast

import click

from detaudit import __version__
from detaudit.errors import DetauditError, ExitCode

COMMANDS = {
    "run": "Is a training script deterministic? Run it several times and compare.",
    "bisect": "Which flags make it deterministic, and is each of them needed?",
    "trace": "Where does the first difference enter: step, operation, line of code, and why?",
    "check": "Is it still so? The gate for CI: the audits of this project, against their baselines.",
    "compare": "Where do two audits, or an audit and a baseline, first differ?",
    "doctor": "What bears on determinism on this machine, and what threatens it?",
    "recipes": "List the recipes and flags; `detaudit recipes show ID` explains one.",
    "report": "Print an audit that was recorded before.",
}
"""Each subcommand is the module of its name in this package, imported when it is asked for."""


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return cast(click.Command, importlib.import_module(f"detaudit.cli.{cmd_name}").command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="detaudit")
def cli() -> None:
    """Audit a training script for determinism, without editing it.

    Exit status: 0 deterministic, 1 non-deterministic, 2 usage error, 125 could not judge, 130 interrupted.
    """


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    try:
        status = cli.main(arguments, prog_name="detaudit", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return ExitCode.INTERRUPTED
    except DetauditError as error:
        click.echo(f"{click.style('error:', fg='red')} {error.message}", err=True)
        if error.cure:
            click.echo(f"  {error.cure}", err=True)
        return error.exit_code
    return status if isinstance(status, int) else ExitCode.DETERMINISTIC
