"""The site of the documentation in a real browser, if `make docs` has made it. Screenshots are in build/screenshots."""

from pathlib import Path

import pytest

from tests.browser.chromium import Chromium

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "docs"
PAGES = [page for page in sorted(SITE.rglob("*.html")) if page.stem not in ("genindex", "search", "py-modindex")]
SHOWN = {"index", "running", "explanation-comparison", "explanation-statistics", "reference-api", "reference-messages"}
"""Pages of which there are screenshots."""

SHOTS = ROOT / "build" / "screenshots"

pytestmark = [pytest.mark.full, pytest.mark.skipif(not PAGES, reason="needs the site that `make docs` makes")]


def name(page: Path) -> str:
    return "-".join(page.relative_to(SITE).with_suffix("").parts)


@pytest.mark.parametrize(
    ("width", "theme"),
    [
        (390, "light"),
        (1280, "dark"),
        pytest.param(390, "dark", marks=pytest.mark.slow),
        pytest.param(1280, "light", marks=pytest.mark.slow),
    ],
)
def test_no_page_is_wider_than_its_window_or_loads_anything_from_elsewhere(
    width: int, theme: str, browser: Chromium
) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    wide = []
    for page in PAGES:
        browser.open(page, width=width, theme=theme)
        if name(page) in SHOWN:
            browser.screenshot(SHOTS / f"site-{name(page)}-{width}-{theme}.png")
        if browser.run("document.documentElement.scrollWidth") > width:
            wide.append(name(page))
        assert [one for one in browser.requests() if not one.startswith((SITE.as_uri(), "data:"))] == []
        assert browser.complaints() == []
    assert wide == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_figure_has_the_colors_of_its_page(theme: str, browser: Chromium) -> None:
    browser.open(SITE / "explanation" / "statistics.html", theme=theme)
    text = browser.run("getComputedStyle(document.querySelector('figure svg text')).fill")
    assert text == browser.run("getComputedStyle(document.querySelector('article p')).color")
    drawn = "[...document.querySelectorAll('figure svg')].every(one => one.getBoundingClientRect().height > 100)"
    assert browser.run(drawn)
