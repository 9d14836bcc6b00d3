"""Errors say what is wrong, where in the command line, and what to do; those of click look like all others."""

from pathlib import Path

import click
import pytest

from detaudit.cli import cli, main
from detaudit.cli.pointer import in_file, pointed_lines

ALL_COMMANDS = cli.list_commands(click.Context(cli))
ALL = {name: cli.get_command(click.Context(cli), name) for name in ALL_COMMANDS}
"""The commands, imported before a test replaces what starts processes."""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["rnu", "train.py"],
            """
            error: unknown command 'rnu'
              detaudit rnu train.py
                       ^^^
              hint: Did you mean 'run'? Available: run,
            """,
        ),
        (
            ["run", "train.py", "--rns", "3"],
            """
            error: unknown option '--rns'
              detaudit run train.py --rns 3
                                    ^^^^^
              hint: Did you mean '--runs'? Arguments of the script follow `--`. Run `detaudit run --help`
            """,
        ),
        (
            ["run", "train.py", "--lr", "0.1"],
            """
            error: unknown option '--lr'
              detaudit run train.py --lr 0.1
                                    ^^^^
              hint: Arguments of the script follow `--`: `detaudit run train.py -- --lr 0.1`. Run
            """,
        ),
        (
            ["check", "--updat"],
            """
            error: unknown option '--updat'
              detaudit check --updat
                             ^^^^^^^
              hint: Did you mean '--update'? Run `detaudit check --help` for all options.
            """,
        ),
        (
            ["doctor", "--format", "jsn"],
            """
            error: invalid --format: 'jsn' is not one of 'table', 'json'
              detaudit doctor --format jsn
                              ^^^^^^^^ ^^^
              hint: Did you mean 'json'? Run `detaudit doctor --help` for all options.
            """,
        ),
        (
            ["run", "train.py", "--runs", "0"],
            """
            error: invalid --runs: 0 is not at least 1
              detaudit run train.py --runs 0
                                    ^^^^^^
            """,
        ),
        (["run", "--timeout", "0"], "error: invalid --timeout: 0.0 is not above 0\n"),
        (["bisect", "--error-rate", "2"], "error: invalid --error-rate: 2.0 is not between 0 and 1\n"),
        (["run", "--seed", "x"], "error: invalid --seed: 'x' is not a valid integer\n"),
        (["run", "--jobs", "some"], "error: invalid --jobs: 'some' is neither a number of runs nor auto\n"),
        (["run", "train.py", "--runs"], "error: --runs needs a value\n  detaudit run train.py --runs\n"),
        (
            ["compare", "before"],
            """
            error: two recordings are compared, or a target with --against REF, or in two environments
              hint: Pass two results folders or baselines, --against HEAD, or two environments: --python A --python B.
            """,
        ),
        (["compare", "a", "b", "c"], "error: two recordings are compared, or a target with --against REF, or in"),
        (
            ["recipes", "show", "torch-sede"],
            """
            error: unknown flag or recipe 'torch-sede'
              detaudit recipes show torch-sede
                                    ^^^^^^^^^^
              hint: Did you mean 'torch-seed'?
            """,
        ),
        (
            ["run", "train.py", "--full", "--until", "4"],
            """
            error: --full cannot be combined with --until, which ends all runs
              detaudit run train.py --full --until 4
                                    ^^^^^^ ^^^^^^^
              hint: Remove one of them.
            """,
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_error(capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    first, *rest = expected.strip("\n").splitlines()
    indent = len(first) - len(first.lstrip())
    assert err.startswith("\n".join(line[indent:].rstrip() for line in (first, *rest)).strip("\n"))
    assert "Usage: " not in err.split("hint:")[0]


@pytest.mark.parametrize("name", [name for name in ALL if name != "recipes"])
def test_each_command_has_a_hint_for_an_option_that_does_not_exist(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main([name, "--frmat", "json"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: unknown option '--frmat'\n")
    near = (
        "Did you mean '--format'? "
        if name not in ("completion", "environments", "evidence", "log", "plan", "worker")
        else ""
    )
    assert near in err
    assert f"Run `detaudit {name} --help` for all options." in err


def test_a_value_after_an_equals_sign_is_underlined_alone() -> None:
    command, marks = pointed_lines("unknown recipe 'sedes'", ("detaudit", "run", "--recipe=sedes", "x y"), None)
    assert command == "  detaudit run --recipe=sedes 'x y'"
    assert click.unstyle(marks) == "                        ^^^^^"


def test_words_that_a_message_only_contains_are_not_underlined() -> None:
    assert pointed_lines("no run finished in time", ("detaudit", "run", "in"), None) == []
    assert (
        pointed_lines("cannot read x.yaml: no such file", ("detaudit", "run", "x.yaml", "y.yaml"), None)[1].count("^")
        == 6
    )


@pytest.mark.parametrize("width", [1, 40, 60, 80])
def test_a_long_command_is_cut_around_the_word(width: int) -> None:
    words = ("detaudit", "run", *["--flag=torch-seed"] * 9, "--recipe", "sedes", *["--no-flag=numpy-seed"] * 9)
    command, marks = pointed_lines("unknown recipe 'sedes'", words, width)
    marks = click.unstyle(marks)
    assert max(len(command), len(marks)) <= max(40, width)
    assert command[marks.index("^") : len(marks)] == "sedes"
    assert command.strip()[0] == command[-1] == "…"


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("2:3", ["  2 |   recipee: all", "    |   ^^^^^^^"]),
        ("2:12", ["  2 |   recipee: all", "    |            ^^^"]),
        ("1:8", ["  1 | digits:", "    |        ^"]),  # at the end of the line
        ("1:9", []),
        ("3:1", []),
        ("0:1", []),
    ],
)
def test_a_line_of_a_file_is_shown(tmp_path: Path, place: str, expected: list[str]) -> None:
    path = tmp_path / "detaudit.yaml"
    path.write_text("digits:\n  recipee: all\n")
    assert [click.unstyle(line) for line in in_file(f"{path}:{place}: unknown", None)] == expected


def test_a_line_that_is_too_long_or_has_a_secret(tmp_path: Path) -> None:
    path = tmp_path / "detaudit.yaml"
    path.write_text(f"command: train.sh {'x ' * 50}, rnus: 3\ncommand: train.sh --api-key hunter22\n")
    shown, marks = (click.unstyle(line) for line in in_file(f"{path}:1:121: unknown", 60))
    assert len(shown) <= 60
    assert shown[marks.index("^") : len(marks)] == "rnus"
    assert in_file(f"{path}:2:1: unknown", 60) == []
    path.write_text("[" * 100_000)
    assert max(map(len, map(click.unstyle, in_file(f"{path}:1:50000 is not a lock file", None)))) <= 160


def test_a_file_that_cannot_be_read_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xff\n")
    assert all(in_file(f"{place}unknown", 80) == [] for place in (f"{tmp_path}/a.yaml:1:1: ", "b.yaml:1:1: ", ""))


def test_wide_letters_are_underlined_whole() -> None:
    command, marks = pointed_lines("unknown recipe '表'", ("detaudit", "表", "x"), None)
    assert (command, click.unstyle(marks)) == ("  detaudit '表' x", "           ^^^^")


def test_without_arguments_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("Usage: detaudit")
    assert "error:" not in out + err


def test_secrets_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--rns", "--", "train.sh", "--api-key", "hunter22"]) == 2
    assert "hunter22" not in capsys.readouterr().err


def test_a_script_alone_means_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train.py", "--runs", "2"]) == 2
    assert "script not found: 'train.py'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (
            "okk.py",
            "script not found: 'okk.py'\n  detaudit run okk.py\n               ^^^^^^\n  hint: Did you mean 'ok.py'?",
        ),
        ("package", "'package' is a folder without a __main__.py"),
        ("a.ipynb", "'a.ipynb' is not a notebook: it has no cells\n"),
    ],
)
def test_what_is_no_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], word: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ok.py").write_text("")
    (tmp_path / "a.ipynb").write_text("{}")
    (tmp_path / "package").mkdir()
    assert main(["run", word]) == 2
    assert said in capsys.readouterr().err


def test_a_missing_recipe_file_is_a_missing_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ok.py").write_text("")
    (tmp_path / "mine.yaml").write_text("")
    assert main(["run", "ok.py", "--recipe", "mime.yaml"]) == 2
    err = capsys.readouterr().err
    assert "recipe file not found: 'mime.yaml'" in err
    assert "Did you mean 'mine.yaml'?" in err
