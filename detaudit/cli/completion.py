"""``detaudit completion``: print the completion script of a shell."""

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from detaudit.cli.help import Command


class _Fish(FishComplete):
    """Splits an answer at its first comma; the script of click also splits at those in a value or its help."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')


_SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": _Fish}
_EXAMPLES = (
    ("bash: add this to ~/.bashrc", 'eval "$(detaudit completion bash)"'),
    ("zsh: add this to ~/.zshrc, below compinit", 'eval "$(detaudit completion zsh)"'),
    ("fish", "detaudit completion fish > ~/.config/fish/completions/detaudit.fish"),
)


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    It completes commands, options, scripts, recipes, flags, variations, stages, the audits of a project and results
    folders.
    """
    script = _SHELLS[shell](ctx.find_root().command, {}, "detaudit", "_DETAUDIT_COMPLETE")
    # That of bash starts one to ask for its version.
    click.echo(ShellComplete.source(script))
