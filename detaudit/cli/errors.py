"""How errors look on stderr."""

import click

from detaudit.errors import DetauditError, NothingToCompareError


def print_error(error: DetauditError) -> None:
    """Print the message of an error, and its hint below."""
    click.echo(f"{click.style('error:', fg='red')} {error.message}{_why(error)}", err=True)
    if error.hint:
        click.echo(f"  {click.style('hint:', fg='cyan')} {error.hint}", err=True)


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
