"""``detaudit completion``: print the completion script of a shell."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from detaudit import wire
from detaudit.cli.help import Command
from detaudit.errors import DetauditError


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


# What knows the names is imported when a shell asks for them: --help has to answer without it.

Items: TypeAlias = "list[CompletionItem[str]]"
Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], Items]


def script(ctx: click.Context, option: click.Parameter, begun: str) -> Items:
    """Complete files until there is a script; what follows it are options."""
    return [] if ctx.params.get("words") and not ctx.params.get("after_dashes") else _files(begun)


def files(ctx: click.Context, option: click.Parameter, begun: str) -> Items:
    """Complete files."""
    return _files(begun)


def recipes(ctx: click.Context, option: click.Parameter, begun: str) -> Items:
    """Complete names of recipes, or the file of one."""
    from detaudit.config.recipes import names, read_recipe

    return _named(begun, {name: read_recipe(name).title for name in names()}) or _files(begun)


def flags(ctx: click.Context, option: click.Parameter, begun: str) -> Items:
    """Complete flags."""
    from detaudit.config.flags import load_catalogue

    return _named(begun, {flag.id: flag.title for flag in load_catalogue()})


def pages(ctx: click.Context, option: click.Parameter, begun: str) -> Items:
    """Complete names of recipes, flags and rules."""
    from detaudit.rules import TABLE

    named = [item for item in recipes(ctx, option, begun) if item.type == "plain"]
    return [*named, *flags(ctx, option, begun), *_named(begun, {rule.name: rule.title for rule in TABLE})]


def variations(ctx: click.Context, option: click.Parameter, begun: str) -> Items:
    """Complete names of variations, and ``all``."""
    from detaudit.config.variations import ALL, load_variations

    return _named(begun, {ALL: "", **{one.id: one.title for one in load_variations()}})


def stages(ctx: click.Context, option: click.Parameter, begun: str) -> Items:
    """Complete the last of several stages."""
    before, comma, last = begun.rpartition(",")
    chosen = before.split(",")
    names = [stage for stage in wire.STAGES if stage not in chosen]
    return _named(begun, {f"{before}{comma}{name}": "" for name in names if name.startswith(last)})


def audits(ctx: click.Context, option: click.Parameter, begun: str) -> Items:
    """Complete names of the project's audits."""
    from detaudit.config import project

    chosen = ctx.params.get("names") or ()
    try:
        project_audits = project.read(ctx.params.get("config") or project.find(Path()))
    except DetauditError:
        return []
    return _named(begun, {name: "" for name in project_audits if name not in chosen})


def results(ctx: click.Context, option: click.Parameter, begun: str) -> Items:
    """Complete results folders, the newest first, or any folder."""
    return _named(begun, dict.fromkeys(_results(), "")) or [CompletionItem(begun, type="dir")]


def recordings(ctx: click.Context, option: click.Parameter, begun: str) -> Items:
    """Complete results folders, the newest first, and baselines."""
    from detaudit import baseline, store

    try:
        baselines = [f"{store.LOCK}#{name}" for name in baseline.read_lock(Path(store.LOCK))]
    except DetauditError:
        baselines = []
    return _named(begun, dict.fromkeys([*_results(), *baselines], "")) or _files(begun)


def compared(ctx: click.Context, option: click.Parameter, begun: str) -> Items:
    """Complete what a comparison takes: recordings, or, with another commit, a script."""
    return script(ctx, option, begun) if ctx.params.get("against") else recordings(ctx, option, begun)


def _results() -> Iterable[str]:
    """Return the results folders in the working directory, the newest first: their names begin with the time."""
    from detaudit import store

    return map(str, store.all_results())


def _named(begun: str, known: dict[str, str]) -> Items:
    return [CompletionItem(name, help=title or None) for name, title in known.items() if name.startswith(begun)]


def _files(begun: str) -> Items:
    return [CompletionItem(begun, type="file")]
