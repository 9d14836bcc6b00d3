"""Durations as people write them."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.model import fact
from detaudit.model.fact import about, duration

PACKAGE = Path(__file__).parents[2] / "detaudit"
SECONDS = re.compile(r"\{[^{}]*[fg]\} (?:s|min|h)\b")
"""A number of seconds, minutes or hours in an f-string."""


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.04, "0.0 s"),
        (10.66, "10.7 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (60, "1 min 00 s"),
        (63.2, "1 min 03 s"),
        (3599.4, "59 min 59 s"),
        (3599.6, "1 h 00 min"),
        (3780, "1 h 03 min"),
        (86369, "23 h 59 min"),
        (86371, "1 d 00 h"),
        (100 * 86400 + 7200, "100 d 02 h"),
        (1001 * 86400, "1,001 d 00 h"),
    ],
)
def test_a_duration(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


def test_a_duration_that_somebody_chose_has_the_digits_of_the_choice() -> None:
    assert [duration(seconds, "g") for seconds in (0.25, 10, 90)] == ["0.25 s", "10 s", "1 min 30 s"]
    assert [duration(seconds, ".0f") for seconds in (10.66, 59.6)] == ["11 s", "1 min 00 s"]


def test_an_estimate_is_no_more_exact_than_it_is() -> None:
    found = [about(seconds) for seconds in (1.5, 119, 121, 290, 3569, 3571, 7230)]
    estimates = ["2 s", "119 s", "2 min", "5 min", "59 min", "1 h 00 min", "2 h 00 min"]
    assert found == [f"about {text}" for text in estimates]


def test_no_other_module_writes_durations() -> None:
    own = Path(fact.__file__)
    texts = {path: path.read_text() for path in PACKAGE.rglob("*.py") if path.parts[-2] != "recorder" and path != own}
    found = [f"{path.name}: {match}" for path, text in texts.items() for match in SECONDS.findall(text)]
    assert found == []


@given(st.floats(0, 1e9), st.sampled_from([".1f", ".0f", "g"]))
def test_no_part_of_a_duration_is_too_large(seconds: float, digits: str) -> None:
    parts = duration(seconds, digits).split()
    limits = {"s": 60, "min": 60, "h": 24}
    for number, unit in zip(parts[::2], parts[1::2], strict=True):
        assert float(number.replace(",", "")) < limits.get(unit, 1e9)
