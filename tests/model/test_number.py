"""Numbers as people write them."""

import pytest

from detaudit.model.fact import count


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 runs"), (1, "1 run"), (2, "2 runs"), (1000, "1,000 runs"), (22300, "22,300 runs")],
)
def test_a_count_agrees_with_its_noun(number: int, text: str) -> None:
    assert count(number, "run") == text


def test_an_irregular_plural_is_given() -> None:
    assert [count(number, "library", "libraries") for number in (1, 2)] == ["1 library", "2 libraries"]
