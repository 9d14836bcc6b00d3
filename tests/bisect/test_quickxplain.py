"""A minimal set from few questions."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.bisect.search import minimal

ITEMS = "abcdefgh"


def ask(items: Sequence[str], needed: str) -> tuple[str, list[str]]:
    """Return the minimal set, and the questions asked."""
    asked: list[str] = []

    def enough(some: list[str]) -> bool:
        asked.append("".join(some))
        return set(needed) <= set(some)

    return "".join(minimal(items, enough)), asked


def test_nothing_is_asked_of_no_item_or_one() -> None:
    assert ask("", "") == ("", [])
    assert ask("a", "a") == ("a", [])


@pytest.mark.parametrize(
    ("needed", "asked"),
    [
        ("a", ["abcd", "ab", "a"]),
        ("h", ["abcd", "abcdef", "abcdefg", "abcdefh", "abcdh", "h"]),
        ("bg", ["abcd", "abcdef", "abcdefg", "abcdg", "g", "gab", "ga", "gb"]),
    ],
)
def test_the_questions_halve_the_items(needed: str, asked: list[str]) -> None:
    found, questions = ask(ITEMS, needed)
    assert found == needed
    assert questions == asked


@given(st.sets(st.sampled_from(ITEMS), min_size=1))
def test_all_that_is_needed_is_found_in_order(needed: set[str]) -> None:
    assert ask(ITEMS, "".join(needed))[0] == "".join(sorted(needed))


def test_of_two_that_are_enough_the_earlier_one_is_preferred() -> None:
    assert minimal(list("abc"), lambda some: bool({"a", "c"} & set(some))) == ["a"]
