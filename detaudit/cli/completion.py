"""``detaudit completion``: print the completion script of a shell."""

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from detaudit.cli.help import Command

_SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
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
