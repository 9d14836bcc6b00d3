"""An argument is added in the layout of the call, and no comment is lost."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detaudit.rules.calls import with_first, with_keyword, without
from detaudit.source.text import SourceText


def call(text: str) -> tuple[SourceText, ast.Call]:
    page = SourceText(text)
    (statement,) = page.reader.tree.body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    return page, statement.value


def text_of(page: SourceText) -> str:
    return "\n".join(page.lines)


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("f()", "f(seed=0)"),
        ("f(a)", "f(a, seed=0)"),
        ("f(a,)", "f(a, seed=0,)"),
        ("f(a, b = 1)", "f(a, b = 1, seed=0)"),
        ("f(seed=None, b=1)", "f(seed=0, b=1)"),
        ("f(\n    a,\n    b=1,\n)", "f(\n    a,\n    b=1,\n    seed=0,\n)"),
        ("f(\n    a,\n    b=1\n)", "f(\n    a,\n    b=1,\n    seed=0\n)"),
        ("f(\n    a\n)", "f(\n    a,\n    seed=0\n)"),
        ("f(a,\n  b)", "f(a,\n  b,\n  seed=0)"),
        ("f(\n    a,  # one\n    b,  # two\n)", "f(\n    a,  # one\n    b,  # two\n    seed=0,\n)"),
        ("f(\n    a,\n    b  # two\n)", "f(\n    a,\n    b,  # two\n    seed=0\n)"),
        ("f(  # nothing\n)", "f(  # nothing\nseed=0)"),
        ("(x\n .g(1)\n .f(a))", "(x\n .g(1)\n .f(a, seed=0))"),
        ("f('ä', b)", "f('ä', b, seed=0)"),
    ],
)
def test_a_keyword_is_added_as_the_others_stand(text: str, new: str) -> None:
    page, node = call(text)
    assert text_of(page.edited(with_keyword(page, node, "seed", "0"))) == new


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("f()", "f(0)"),
        ("f(b=1)", "f(0, b=1)"),
        ("f(  # none\n)", "f(  # none\n0)"),
        ("f(\n    b=1,\n)", "f(\n    0, b=1,\n)"),
    ],
)
def test_a_first_argument(text: str, new: str) -> None:
    page, node = call(text)
    assert text_of(page.edited(with_first(page, node, "0"))) == new


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("f(a, b=False)", "f(a)"),
        ("f(b=False)", "f()"),
        ("f(b=False, c=1)", "f(c=1)"),
        ("f(a, b=False, c=1)", "f(a, c=1)"),
        ("f(\n    a,\n    b=False,\n    c=1,\n)", "f(\n    a,\n    c=1,\n)"),
        ("f(\n    a,\n    b=False,  # fast\n)", "f(\n    a,\n    b=True,  # fast\n)"),
    ],
)
def test_a_keyword_is_left_out_unless_a_comment_would_go_with_it(text: str, new: str) -> None:
    page, node = call(text)
    assert text_of(page.edited(without(page, node, "b"))) == new


gaps = st.sampled_from(["", " ", "\n", "\n    ", "  # ünder way\n  ", "\r\n  "])
arguments = st.lists(st.sampled_from(["a", "'é'", "b=1", "c = (2)", "*d", "**e", "g(h, i)"]), max_size=4)


@settings(deadline=None)
@given(arguments, st.lists(gaps, min_size=12, max_size=12), st.booleans())
def test_however_a_call_is_written_it_has_one_argument_more_and_all_its_comments(
    given_arguments: list[str], spaces: list[str], trailing: bool
) -> None:
    ordered = sorted(given_arguments, key=lambda one: ("=" in one or one.startswith("**"), one.startswith("**")))
    ordered = list(dict.fromkeys(ordered))
    pieces = [f"{gap}{one}{after}" for one, gap, after in zip(ordered, spaces, spaces[4:], strict=False)]
    text = f"f({','.join(pieces)}{',' if trailing and pieces else ''}{spaces[-1]})"
    page, node = call(text)
    added = page.edited(with_keyword(page, node, "seed", "0"))
    (statement,) = added.reader.tree.body
    expected = ast.parse(f"f({', '.join([*ordered, 'seed=0'])})").body[0]
    assert ast.dump(statement) == ast.dump(expected)
    assert text_of(added).count("# ünder way") == text.count("# ünder way")
