"""The command line, the only place that turns errors into text and exit codes."""

import importlib
import sys
from typing import cast

import click

from detaudit import __version__, entry_points
from detaudit.cli import errors
from detaudit.cli.errors import print_error, print_internal_error
from detaudit.cli.help import Group
from detaudit.cli.screen import color
from detaudit.errors import DetauditError, ExitCode, UnknownNameError
from detaudit.notebooks.cells import SCRIPTS

COMMANDS = {
    "run": "Check whether a training script is deterministic.",
    "bisect": "Find a minimal set of flags that makes it deterministic.",
    "trace": "Find the line and the operation where two runs diverge.",
    "fix": "Find the edits that make a training deterministic, prove them, and apply them.",
    "resume": "Stop a training, resume it, and name what it lost.",
    "check": "Gate CI: run this project's audits and compare them with their baselines.",
    "compare": "Show where two audits, two commits or two environments first differ.",
    "environments": "List the environments that comparisons built, or remove them.",
    "doctor": "Show what affects determinism on this machine.",
    "recipes": "List the recipes, flags and rules; `detaudit recipes show ID` explains one.",
    "report": "Print the report of an earlier audit or check.",
    "evidence": "Archive an earlier audit with the hashes of all that it used.",
    "verify": "Check such an archive, and list what has changed since.",
    "log": "Print the event logs of a run as text.",
    "completion": "Print the completion script of a shell.",
}
"""Each is a module of this package, imported only when it is used. Entry points name others."""

_NO_ARGUMENTS = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""What click from 8.2 on raises for a command line without anything, to print the help."""

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


_EXAMPLES = (
    ("is it deterministic?", "detaudit run train.py"),
    ("which flags make it deterministic?", "detaudit bisect train.py"),
    ("which line makes two runs diverge?", "detaudit trace train.py"),
    ("is it still deterministic? (for CI)", "detaudit check"),
    ("options and examples of a command", "detaudit run --help"),
)


class _Group(Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *entry_points.names(entry_points.COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            return cast(click.Command, importlib.import_module(f"detaudit.cli.{cmd_name}").command)
        try:
            return cast(click.Command, entry_points.command(cmd_name).load())
        except UnknownNameError:
            return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            others = entry_points.names(entry_points.COMMANDS)
            formatter.write_dl([*COMMANDS.items(), *((name, entry_points.command(name).help) for name in others)])


@click.group(cls=_Group, context_settings=_CONTEXT, examples=_EXAMPLES)
@click.version_option(__version__, prog_name="detaudit")
def cli() -> None:
    """Audit a training script for determinism, without editing it.

    Exit status: 0 deterministic, 1 nondeterministic, 2 usage error, 70 internal error, 125 inconclusive,
    130 interrupted.
    """


def _with_command(arguments: list[str]) -> list[str]:
    """Return the arguments with ``run`` in front if they begin with a script: ``detaudit train.py`` runs it."""
    first = arguments[0] if arguments else ""
    is_script = first.endswith(SCRIPTS) and first not in COMMANDS
    return ["run", *arguments] if is_script else arguments


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    arguments = _with_command(sys.argv[1:] if arguments is None else arguments)
    try:
        status = cli.main(arguments, prog_name="detaudit", standalone_mode=False, color=color())
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        if isinstance(error, _NO_ARGUMENTS):
            error.show()
        else:
            print_error(errors.usage_error(error, arguments), arguments)
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return ExitCode.INTERRUPTED
    except DetauditError as error:
        print_error(error, arguments)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - a traceback, with exit status 1, would look like a nondeterministic run
        print_internal_error(error)
        return ExitCode.INTERNAL
    return status if isinstance(status, int) else ExitCode.DETERMINISTIC
