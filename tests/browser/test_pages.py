"""HTML reports of real audits in a real browser. Screenshots are left in build/screenshots, to be looked at."""

import json
from importlib import resources
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from detaudit.report import html
from tests.browser.chromium import Chromium
from tests.browser.conftest import COMMANDS
from tests.report.checks import CHECK

pytestmark = pytest.mark.full

NAMES = (*COMMANDS, "compare")
SHOTS = Path(__file__).parents[2] / "build" / "screenshots"
TIP = "document.querySelector('.tip').hidden ? '' : document.querySelector('.tip').textContent"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_a_page_asks_for_nothing_and_has_no_complaints(
    name: str, theme: str, pages: dict[str, Path], browser: Chromium
) -> None:
    browser.open(pages[name], theme=theme)
    assert browser.requests() == [pages[name].as_uri()]
    assert browser.complaints() == []
    assert browser.run("document.querySelectorAll('h1').length") == 1


@pytest.mark.parametrize("width", [390, 1280, pytest.param(1920, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_no_wider_than_its_window(name: str, width: int, pages: dict[str, Path], browser: Chromium) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    for theme in ("light", "dark"):
        browser.open(pages[name], width=width, theme=theme)
        browser.screenshot(SHOTS / f"{name}-{width}-{theme}.png")
        assert browser.run("document.documentElement.scrollWidth") <= width


def test_the_navigation_of_many_audits_fits_on_a_phone(tmp_path: Path, browser: Chromium) -> None:
    audits = tuple(msgspec.structs.replace(CHECK.audits[0], name=f"audit-number-{number}") for number in range(12))
    page = tmp_path / "check.html"
    page.write_text(html.render(msgspec.structs.replace(CHECK, audits=audits)))
    browser.open(page, width=390)
    nav = "document.querySelector('nav')"
    assert browser.run(f"{nav}.scrollWidth <= {nav}.clientWidth")
    assert browser.run(f"[...{nav}.children].every(link => link.getBoundingClientRect().right <= 390)")
    assert browser.run("document.documentElement.scrollWidth") <= 390


def test_final_losses_fit_on_a_phone(pages: dict[str, Path], browser: Chromium) -> None:
    browser.open(pages["many"], width=390)
    box, texts = "document.querySelector('.strips').parentNode", "[...document.querySelectorAll('.strips .axis text')]"
    assert browser.run(f"{box}.scrollWidth <= {box}.clientWidth")
    boxes = json.loads(
        browser.run(
            f"JSON.stringify({texts}.map(one => one.getBoundingClientRect()).map(one => [one.left, one.right]))"
        )
    )
    assert all(before[1] < after[0] for before, after in pairwise(boxes))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_no_violations(name: str, theme: str, pages: dict[str, Path], browser: Chromium) -> None:
    pytest.importorskip("axe_core_python")
    browser.open(pages[name], theme=theme)
    browser.run(resources.files("axe_core_python").joinpath("axe.min.js").read_text() + "\n;0")
    found = json.loads(browser.run("axe.run().then(found => JSON.stringify(found.violations))"))
    assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found] == []


def test_the_theme_is_changed_by_keys_and_kept(pages: dict[str, Path], browser: Chromium) -> None:
    browser.open(pages["run"])
    background = "getComputedStyle(document.body).backgroundColor"
    light = browser.run(background)
    browser.run("document.querySelector('.theme').focus()")
    browser.press("Enter", "Enter")
    assert browser.run("document.querySelector('.theme').textContent") == "Theme: dark"
    dark = browser.run(background)
    assert dark != light
    browser.press("Enter")
    assert browser.run(background) == light


def test_losses_are_read_by_keys(pages: dict[str, Path], browser: Chromium) -> None:
    browser.open(pages["run"])
    assert browser.run("document.querySelectorAll('.area path.ln').length") > 4
    assert browser.run("[...document.querySelectorAll('.area path.k-A')].every(p => p.getBBox().width > 100)")
    browser.run("document.querySelector('.area').focus()")
    browser.press("Home", "ArrowRight", "ArrowRight")
    said = browser.run("document.activeElement.getAttribute('aria-valuetext')")
    assert said.startswith("step 3, A run")
    assert browser.run(TIP).splitlines() == said.split(", ")
    assert browser.run("getComputedStyle(document.activeElement.querySelector('.cur')).visibility") == "visible"
    browser.press("End")
    assert browser.run(TIP).startswith("step 29\n")
    browser.press("Escape")
    assert browser.run(TIP) == ""


def test_the_ladder_is_read_by_keys(pages: dict[str, Path], browser: Chromium) -> None:
    browser.open(pages["run"])
    browser.run("document.querySelector('.lad td').focus()")
    first = browser.run(TIP)
    browser.press("ArrowRight", "ArrowDown")
    assert first.startswith("step 1, ")
    assert browser.run(TIP).startswith("step 2, ")
    assert browser.run(TIP) == browser.run("document.activeElement.getAttribute('aria-label')")


def test_every_link_and_button_is_reached_by_the_tab_key(pages: dict[str, Path], browser: Chromium) -> None:
    browser.open(pages["run"])
    wanted = browser.run("document.querySelectorAll('a[href], button, summary, [tabindex=\"0\"]').length")
    seen = set()
    for number in range(wanted + 1):
        browser.press("Tab")
        browser.run(f"document.activeElement.dataset.seen ??= '{number}'")
        seen.add(browser.run("document.activeElement.dataset.seen"))
    assert len(seen) >= wanted


def test_what_a_script_wrote_stays_text(pages: dict[str, Path], browser: Chromium) -> None:
    browser.open(pages["hostile"])
    assert "window.owned = 1" in browser.run("document.body.innerText")
    assert browser.run("typeof window.owned") == "undefined"
    assert browser.run("document.images.length") == 0


def test_on_paper_nothing_is_folded_and_colors_are_light(pages: dict[str, Path], browser: Chromium) -> None:
    browser.open(pages["many"], theme="dark")
    assert browser.run("document.querySelectorAll('details:not([open])').length") >= 1
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run("document.querySelectorAll('details:not([open])').length") == 0
    browser.open(pages["many"], theme="dark", media="print")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
