"""The colors of a page: every text can be read on what it stands on, in light and in dark."""

import re
from pathlib import Path

import pytest

from detaudit.report import html

STYLE = Path(html.__file__).with_name("style.css").read_text()
THEMES = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in re.findall(r"(?s):root.*?\{(.*?)\}", STYLE)]
TEXTS = [
    *((ink, page) for ink in ("fg", "mut", "link", "same", "diff", "unk") for page in ("bg", "sub")),
    ("mut", "inset"),
    ("mut", "h0"),
    ("fg", "diffb"),
    ("diff", "diffb"),
    ("fg", "sameb"),
    *(("fg", f"h{shade}") for shade in (1, 2, 3)),
    *(("bg", f"h{shade}") for shade in (4, 5)),
    *(("bg", f"c{letter}") for letter in "ABCDEFGX"),
]


def luminance(color: str) -> float:
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_there_are_a_light_theme_and_a_dark_one_twice() -> None:
    assert len(THEMES) == 3
    assert THEMES[1] == THEMES[2]
    assert {*THEMES[0]} == {*THEMES[1]}
    assert luminance(THEMES[0]["bg"]) > 0.9 > 0.1 > luminance(THEMES[1]["bg"])


@pytest.mark.parametrize("theme", THEMES[:2], ids=["light", "dark"])
@pytest.mark.parametrize(("ink", "page"), TEXTS)
def test_text_has_the_contrast_that_wcag_asks_for(theme: dict[str, str], ink: str, page: str) -> None:
    assert contrast(theme[ink], theme[page]) >= 4.5
