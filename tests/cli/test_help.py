"""--help has the options in groups, and examples that the command line takes."""

import re
import shlex
import sys
from collections.abc import Iterator
from importlib import metadata

import click
import pytest

from detaudit import entry_points
from detaudit.cli import cli, main
from detaudit.cli.help import Command, Group
from detaudit.errors import UnknownNameError
from tests.report.widths import too_wide

ALL_COMMANDS = cli.list_commands(click.Context(cli))


def commands() -> Iterator[tuple[list[str], click.Command]]:
    """Yield each command with its words."""
    yield [], cli
    context = click.Context(cli, info_name="detaudit")
    for name in ALL_COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        yield [name], command
        if isinstance(command, click.Group):
            yield from (([name, inner], command.commands[inner]) for inner in command.commands)


ALL = {" ".join(words) or "detaudit": (words, command) for words, command in commands()}


@pytest.mark.parametrize("name", ALL)
def test_each_command_has_examples_that_parse(name: str) -> None:
    _, command = ALL[name]
    assert isinstance(command, Command | Group)
    assert command.examples
    for _, line in command.examples:
        words = shlex.split(line.split(" > ")[0].removeprefix('eval "$(').removesuffix(')"'))
        assert words[0] == "detaudit"
        with cli.make_context("detaudit", words[1:], resilient_parsing=True) as context:
            called, found, rest = cli.resolve_command(context, words[1:])
        assert found is not None
        assert called in ALL_COMMANDS
        if "--resume" not in rest and "--help" not in rest:
            found.make_context(called, rest, parent=click.Context(cli))


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("name", ALL)
def test_help_fits(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main([*ALL[name][0], "--help"]) == 0
    text = capsys.readouterr().out
    assert "\nExamples:\n" in text
    assert too_wide(text, width) == []


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("run", ["Target", "Runs", "Flags", "What is compared", "Output", "Examples"]),
        ("bisect", ["Target", "Search", "Runs", "Flags", "What is compared", "Output", "Examples"]),
        ("trace", ["Target", "Runs", "Flags", "What is recorded", "Replay", "What is compared", "Output", "Examples"]),
        ("check", ["Gates", "Files", "Runs", "What is compared", "Output", "Examples"]),
        ("recipes", ["Commands", "Options", "Output", "Examples"]),
    ],
)
def test_options_are_in_groups(capsys: pytest.CaptureFixture[str], name: str, groups: list[str]) -> None:
    assert main([name, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:-1] for line in lines if line.endswith(":") and not line.startswith(" ")] == groups


def test_options_of_a_group_stand_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    flags = capsys.readouterr().out.split("\nFlags:\n")[1].split("\n\n")[0]
    assert [line.split()[0] for line in flags.splitlines() if line.startswith("  -")] == [
        "--recipe",
        "--flag",
        "--no-flag",
        "--seed",
    ]


@pytest.mark.parametrize("words", [["run", "--help"], ["bisect", "--help"], ["check", "--help"], ["run", "missing.py"]])
def test_a_command_of_our_own_reads_no_entry_points(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    def read(**_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(metadata, "entry_points", read)
    assert main(words) in (0, 2)


def test_a_command_of_another_package_is_listed_and_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = metadata.EntryPoint("extra", f"{__name__}:EXTRA", entry_points.COMMANDS)
    monkeypatch.setattr(metadata, "entry_points", lambda **_: metadata.EntryPoints([entry]))
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    assert main(["--help"]) == 0
    assert re.search(r"^  extra +Says hello\.$", capsys.readouterr().out, re.MULTILINE)
    assert main(["extra"]) == 0
    assert capsys.readouterr().out == "hello\n"


def test_a_source_tree_without_an_installation_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda **_: metadata.EntryPoints([]))
    with pytest.raises(UnknownNameError, match="'replays' of detaudit is not installed") as raised:
        entry_points.entry_point(entry_points.LEAVES, "replays", "part")
    assert "install detaudit" in raised.value.hint
    with pytest.raises(UnknownNameError, match="unknown command 'rum'"):
        entry_points.command("rum")


@click.command()
def extra() -> None:
    """Say hello."""
    click.echo("hello")


EXTRA = entry_points.Command("Says hello.", f"{__name__}:extra")
