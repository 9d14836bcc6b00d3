"""No line of a report is wider than the terminal, and a wide one shows more."""

import shlex

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from detaudit.report import FORMATS, render, terminal
from detaudit.report.document import (
    DIGEST,
    FINAL_LOSS,
    FLAGS,
    STEPS,
    SUM_OF_WEIGHTS,
    TIME,
    Cell,
    Column,
    Mood,
    Table,
    plain,
)
from tests.report.test_reporters import ALL
from tests.report.widths import too_wide

TEXTS = st.text(st.sampled_from("ab-é表 "), max_size=60)
WIDTHS = st.integers(terminal.LEAST, 250)


@given(st.sampled_from(sorted(ALL)), WIDTHS)
def test_no_line_of_a_report_is_wider_than_the_terminal(name: str, width: int) -> None:
    assert too_wide(render(ALL[name], "table", width=width), width) == []


@pytest.mark.parametrize("format_", [format_ for format_ in FORMATS if format_ != "table"])
def test_other_formats_are_the_same_at_any_width(format_: str) -> None:
    for report in ALL.values():
        assert render(report, format_, width=60) == render(report, format_)


@given(st.sampled_from(sorted(ALL)), WIDTHS)
def test_a_narrow_terminal_only_breaks_text(name: str, width: int) -> None:
    whole, narrow = (render(ALL[name], "table", width=one).split("next:")[0] for one in (None, width))
    tables = {word for text in (whole, narrow) for word in table_words(text)}
    missing = [word for word in whole.split() if word not in tables and word not in narrow]
    assert missing == []


def table_words(text: str) -> set[str]:
    """Return the words of all tables: columns may be left out, and words broken."""
    lines, found, inside = text.splitlines(), set[str](), False
    for number, line in enumerate(lines):
        inside = bool(line) and (inside or set(next(iter(lines[number + 1 : number + 2]), "")) == {"-", " "})
        found |= set(line.split()) if inside else set()
    return found


FIRST_DIFFERENCE = Column("FIRST DIFFERENCE", left=True, comfort=17)
LONG = Table(
    (Column("RUN"), SUM_OF_WEIGHTS, FINAL_LOSS, STEPS, TIME, DIGEST, FIRST_DIFFERENCE),
    [["1", "-147.63935280458827", "0.45710381865501404", "36", "1 h 03 min", "2212391d A", "step 36, backward"]],
)


@pytest.mark.parametrize(
    ("width", "hidden"),
    [
        (None, []),
        (200, []),
        (80, ["STEPS", "TIME"]),
        (60, ["FINAL LOSS", "STEPS", "TIME"]),
        (40, ["SUM OF WEIGHTS", "FINAL LOSS", "STEPS", "TIME"]),
    ],
)
def test_what_matters_least_is_left_out_and_named(width: int | None, hidden: list[str]) -> None:
    found = terminal.fitted(LONG, width)
    assert [header for header in LONG.headers if header not in found.headers] == hidden
    assert found.note == (f"hidden at this width: {', '.join(hidden)}" if hidden else "")


def test_a_column_that_says_nothing_is_left_out_first_and_not_named() -> None:
    cells = ["1", "-", "0.5", "36", "10.7 s", "2212391d", "x" * 40]
    found = terminal.fitted(Table(LONG.columns, [cells]), 95)
    assert "SUM OF WEIGHTS" not in found.headers
    assert (found.note, len(found.headers)) == ("", 6)


def test_texts_are_wrapped_between_words() -> None:
    found = terminal.fitted(
        Table((Column("TRIAL"), FLAGS), [["1", "* mkl-dynamic-off, numpy-default-rng, torch-seed"]]), 45
    )
    assert list(terminal.lines(found)) == [
        "TRIAL  FLAGS",
        "-----  -------------------------------------",
        "    1  * mkl-dynamic-off, numpy-default-rng,",
        "       torch-seed",
    ]


@given(st.lists(st.lists(TEXTS, min_size=3, max_size=3), min_size=1, max_size=4), st.integers(terminal.LEAST, 90))
def test_a_table_of_any_text_fits(rows: list[list[str]], width: int) -> None:
    text = terminal.drawn(Table((Column("RUN"), FLAGS, FIRST_DIFFERENCE), rows), width)
    assert [line for line in text.splitlines() if cell_len(line) > width] == []
    shown = "".join(text.split())
    assert all(letter in shown for row in rows for cell in row for letter in cell.replace(" ", ""))


@given(TEXTS, WIDTHS, st.sampled_from(["", "  ", "  | "]))
def test_filled_text_keeps_its_words(text: str, width: int, indent: str) -> None:
    found = terminal.filled(text, width, indent, indent)
    assert [line[len(indent) :] for line in found.splitlines()] == [
        line.removeprefix(indent) for line in found.splitlines()
    ]
    assert "".join(found.replace(indent, "").split()) == "".join(text.split())
    assert too_wide(found, width) == []
    assert terminal.filled(text, None, indent) == indent + text


def test_a_cell_has_the_color_of_its_mood_or_of_its_result_in_each_of_its_lines() -> None:
    cells = [Cell("no: step 3, backward", Mood.BAD), Cell("2212391d A", mark=0), Cell("2212391d B", mark=1), "no"]
    columns = [FIRST_DIFFERENCE, Column("DIGEST"), Column("OTHER"), Column("PLAIN")]
    _, _, first, second = terminal.lines(terminal.fitted(plain(Table(columns, [cells])), 50))
    assert first.split("  ")[0] == click.style("no: step 3,", fg="red")
    assert second.strip() == click.style("backward", fg="red")
    assert click.style("2212391d A", fg="cyan") in first
    assert click.style("2212391d B", fg="magenta") in first
    assert first.endswith(" no")


def test_colors_take_no_room() -> None:
    text = f"{click.style('warning:', fg='yellow')} " + "word " * 10
    assert click.unstyle(terminal.filled(text, 60)) == terminal.filled(click.unstyle(text), 60)


@given(st.lists(st.text(st.sampled_from("ab '$\\#"), min_size=1, max_size=30), min_size=1), WIDTHS)
def test_a_broken_command_is_still_the_same_command(words: list[str], width: int) -> None:
    text = shlex.join(words)
    found = terminal.command(text, width, "  ")
    assert shlex.split(found.replace(" \\\n      ", " ")) == words


def test_a_long_command_is_broken_so_that_it_can_be_pasted() -> None:
    text = "detaudit run train.py --recipe .detaudit/20261121-145042-24652d70/detaudit-recipe.yaml --runs 30"
    assert terminal.command(text, 60, "  ").splitlines() == [
        "  detaudit run train.py --recipe \\",
        "      .detaudit/20261121-145042-24652d70/detaudit-recipe.yaml \\",
        "      --runs 30",
    ]
    assert terminal.command(text, 80, "  ").splitlines() == [
        "  detaudit run train.py \\",
        "      --recipe .detaudit/20261121-145042-24652d70/detaudit-recipe.yaml \\",
        "      --runs 30",
    ]
