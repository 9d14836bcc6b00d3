"""Texts of a script control no terminal, start no command and draw nothing in Markdown."""

import click
import msgspec
import pytest
from click.testing import CliRunner

from detaudit.cli.errors import print_error
from detaudit.config.recipes import Recipe, RecipeFile
from detaudit.errors import UsageError
from detaudit.model import Diagnosis, Report, Source, SourceKind
from detaudit.report import catalogue, render
from detaudit.report.markdown import prose
from detaudit.report.plain import plain, row
from tests.report.test_ci_formats import hostile
from tests.report.test_reporters import AUDITS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("a\x08\x7f\x9b1m", r"a\x08\x7f\x9b1m"),
        ("\u202egpj.exe\u2066", r"\u202egpj.exe\u2066"),
        ("a\u2028b\x85c", r"a\u2028b\x85c"),
        ("\ud800", r"\ud800"),
        ("a\n  ::error::x", "a\n  \\x3a:error::x"),
        ("a ##[error]x", r"a #\x23[error]x".replace("#\\x23", "\\x23#")),
        ("std::sort(), # a, [b]", "std::sort(), # a, [b]"),
    ],
)
def test_plain(text: str, expected: str) -> None:
    assert plain(text) == expected
    assert "\n" not in row(text)


def with_source(file: str) -> Report:
    audit = AUDITS["nondeterministic"]
    source = Source(file=file, line=7, kind=SourceKind.SEED, call="seed")
    return msgspec.structs.replace(audit, groups=(msgspec.structs.replace(audit.groups[0], sources=(source,)),))


@pytest.mark.parametrize("format_", ["table", "markdown"])
def test_a_report_for_people_controls_no_terminal(format_: str) -> None:
    for report in (hostile("\x1b[2J\x07\x9b\u202e\r\n::error::x"), with_source("\x1b]0;t\x07\x08\n::add-mask::x")):
        text = click.unstyle(render(report, format_))
        assert not set(text) & {*"\x1b\x07\x08\r\x9b\u202e"}
        assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<img src=x>", r"\<img src=x>"),
        ("![a](http://b)", r"![a]\(http://b)"),
        ("# a", r"\# a"),
        ("1. a", r"1\. a"),
        ("> a", r"\> a"),
        ("--- a", r"\--- a"),
        ("a_b [0] #1 `c` 1.5 * 2 -> 3", "a_b [0] #1 `c` 1.5 * 2 -> 3"),
    ],
)
def test_prose(text: str, expected: str) -> None:
    assert prose(text) == expected


def test_code_in_markdown_ends_where_it_should() -> None:
    assert "- `` a`b:7: seed() is seeded" in render(with_source("a`b"), "markdown")
    text = render(hostile("```\n<b>"), "markdown")
    assert "\n````\n``` <b>\n``` <b>\n````\n" in text


def test_a_cell_of_a_table_is_one_cell() -> None:
    audit = AUDITS["nondeterministic"]
    (run, *runs), rank = audit.groups[0].runs, audit.groups[0].runs[0].ranks[0]
    run = msgspec.structs.replace(run, ranks=(msgspec.structs.replace(rank, digest="a|<b\n|c"),))
    group = msgspec.structs.replace(audit.groups[0], runs=(run, *runs))
    text = render(msgspec.structs.replace(audit, groups=(group,)), "markdown")
    assert r"| a\|\<b \|c" in text


def test_errors_machines_and_recipes_are_plain_too(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(UsageError("no \x1b[31m\x07file", "Try\n::error::x"))
    error = capsys.readouterr().err
    assert "no \\x07file" in click.unstyle(error)
    assert "\n::" not in error
    file = RecipeFile(name="a\x07", flags=(), title="<b>\n# c", extends=("d\x1b[0m",))
    shown = catalogue.one_recipe((file, Recipe(name="a", seed=0, flags=())), "markdown")
    assert shown == "## a\\x07\n\n\\<b> # c\n\nExtends: d\n\nSeed: 0\n"
    assert "\x07" not in catalogue.render(
        Diagnosis(schema_version="1.0", python="python", environment={}, relevant={"TZ": "\x07"}, risks=()), "table"
    )


def test_the_command_line_prints_plain_errors() -> None:
    from detaudit.cli import main

    with CliRunner().isolation() as (_, err, *_):
        assert main(["compare", "a\x1b[2J\x07", "b"]) == 2
        printed = click.unstyle(err.getvalue().decode())
    assert "a\\x07" in printed
