"""The table of weights and steps: what its cells say, and the sentence below it."""

import re

import pytest

from detaudit.model.figures import Figures, GroupFigures, WeightCell, WeightRow, Weights
from detaudit.model.record import WeightKind
from detaudit.report import html
from detaudit.report.html.figures import WeightTable
from tests.report.html.test_page import HOSTILE, Elements
from tests.report.test_reporters import AUDITS

SAME = WeightCell(digests=1)
APART = WeightCell(digests=2, apart=3.1e-7)


def a_row(
    *cells: WeightCell | None, name: str | None = None, place: int = 1, shape: tuple[int, ...] = (10, 64)
) -> WeightRow:
    return WeightRow(kind=WeightKind(dtype="float32", shape=shape, name=name), place=place, cells=cells)


def a_table(
    *rows: WeightRow, steps: tuple[int | None, ...] = (1, 2, None), first: int = 1, more: int = 0,
    hidden: tuple[int, ...] = (), unlisted: int = 0, runs: int = 2,
) -> Weights:  # fmt: skip
    return Weights(
        runs=tuple(range(1, runs + 1)),
        steps=steps,
        rows=rows,
        differing=len(rows) + more,
        first=first,
        count=9,
        listed=(*steps[:-1], *hidden, steps[-1]),
        unlisted=unlisted,
    )


def page(found: Weights) -> str:
    return html.render(AUDITS["nondeterministic"], Figures(groups=(GroupFigures(weights=found), GroupFigures())))


def test_a_cell_says_how_many_digests_there_are_and_how_far_the_sums_are_apart() -> None:
    text = page(a_table(a_row(SAME, APART, None, name="fc.weight"), a_row(SAME, SAME, APART, place=3, shape=(10,))))
    found = Elements(text)
    tips = [a["data-tip"] for tag, a in found.found if tag == "td" and "data-tip" in a]
    assert tips == [
        "fc.weight, step 1: both runs match",
        "fc.weight, step 2: 2 different digests, sums differ by up to 3.1e-07 of the larger one",
        "fc.weight, the end: not recorded in every run",
        "weight 3, step 1: both runs match",
        "weight 3, step 2: both runs match",
        "weight 3, the end: 2 different digests, sums differ by up to 3.1e-07 of the larger one",
    ]
    rows = re.findall(r'<th scope="row"><code>([^<]*)</code> <span class="t">([^<]*)<', text)
    assert rows == [("fc.weight", "float32 [10, 64]"), ("weight 3", "float32 [10]")]


def test_a_number_has_no_shape() -> None:
    ((_, kind, _),) = WeightTable("none", a_table(a_row(APART, APART, APART, shape=()))).rows
    assert kind == "float32"


def test_what_a_cell_shows_is_said_in_words_too() -> None:
    text = page(a_table(a_row(SAME, APART, None)))
    assert '<span aria-hidden="true">-7</span><span class="hid">2 different digests, sums differ by up to' in text
    assert '<span aria-hidden="true">·</span><span class="hid">both runs match</span>' in text
    assert '<span aria-hidden="true"></span><span class="hid">not recorded in every run</span>' in text


@pytest.mark.parametrize(
    ("cell", "text", "kind", "words"),
    [
        (None, "", "x", "not recorded in every run"),
        (WeightCell(digests=1), "·", "h0", "all 3 runs match"),
        (WeightCell(digests=3, apart=0.0), "≠", "h1", "3 different digests, the sums are equal"),
        (WeightCell(digests=2, apart=5e-324), "-324", "h1", "of the larger one"),
        (WeightCell(digests=2, apart=2e-8), "-8", "h1", "sums differ by up to 2e-08 of the larger one"),
        (WeightCell(digests=2, apart=1e-6), "-6", "h2", "1e-06"),
        (WeightCell(digests=2, apart=0.0004), "-4", "h3", "0.0004"),
        (WeightCell(digests=2, apart=0.02), "-2", "h4", "0.02"),
        (WeightCell(digests=2, apart=2.0), "0", "h5", "up to 2 of"),
        (WeightCell(digests=2, apart=None), "!", "h5", "2 different digests, a sum is NaN or infinite"),
    ],
)
def test_the_farther_the_sums_are_apart_the_darker_is_the_cell(
    cell: WeightCell | None, text: str, kind: str, words: str
) -> None:
    ((_, _, (shown,)),) = WeightTable("none", a_table(a_row(cell), steps=(1,), runs=3)).rows
    assert (shown["text"], shown["kind"]) == (text, kind)
    assert words in shown["words"]


@pytest.mark.parametrize(
    ("steps", "where"),
    [((1, 2, None), "steps 1, 2 and the end"), ((1, None), "step 1 and the end"), ((None,), "the end")],
)
def test_weights_that_match_do_so_as_far_as_they_were_recorded(steps: tuple[int | None, ...], where: str) -> None:
    table = WeightTable("none", a_table(steps=steps, runs=4))
    assert table.sentence == f"all 4 runs match in each of 9 weights at {where}, as far as all of them recorded it"
    assert table.left_out == []


@pytest.mark.parametrize(
    ("rows", "first", "more", "sentence"),
    [
        ([a_row(APART, name="w")], 1, 0, "1 of 9 weights differs, first at step 1: w"),
        ([a_row(SAME, APART), a_row(SAME, SAME, place=2)], 1, 0, "2 of 9 weights differ, first at step 2: weight 1"),
        ([a_row(SAME, SAME, APART)], 1, 0, "1 of 9 weights differs, first at the end: weight 1"),
        (
            [a_row(APART, name=one) for one in "abcd"],
            4,
            0,
            "4 of 9 weights differ, first at step 1: a, b, c, d",
        ),
        ([a_row(APART, name="w")], 3, 4, "5 of 9 weights differ, first at step 1: w and 2 more"),
    ],
)
def test_the_sentence_says_which_weights_differ_first(
    rows: list[WeightRow], first: int, more: int, sentence: str
) -> None:
    assert WeightTable("none", a_table(*rows, first=first, more=more)).sentence == sentence


@pytest.mark.parametrize(
    ("more", "hidden", "unlisted", "lines"),
    [
        (0, (), 0, []),
        (1, (), 1, ["1 more weight differs", "1 more weight is not recorded one by one"]),
        (4, (4,), 0, ["4 more weights differ", "not shown: step 4"]),
        (0, (4, 8), 20, ["not shown: steps 4 and 8", "20 more weights are not recorded one by one"]),
    ],
)
def test_what_the_table_leaves_out_is_counted(
    more: int, hidden: tuple[int, ...], unlisted: int, lines: list[str]
) -> None:
    found = a_table(a_row(APART, APART, APART), more=more, hidden=hidden, unlisted=unlisted)
    assert WeightTable("none", found).left_out == lines


def test_without_differences_there_is_a_line_and_no_table() -> None:
    text = page(a_table())
    assert "Both runs match in each of 9 weights" in text
    assert '<table class="lad wts">' not in text
    assert "Which weights differ first" not in html.render(
        AUDITS["nondeterministic"], Figures(groups=(GroupFigures(),) * 2)
    )


def test_a_name_stays_text() -> None:
    found = Elements(page(a_table(a_row(APART, APART, APART, name=HOSTILE))))
    assert [tag for tag, _ in found.found].count("script") == 1
    assert "alert(1)" in found.text
    assert not {"\x1b", "\u202e"} & set(found.text)
