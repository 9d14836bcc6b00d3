"""What the site makes of a page, and what it takes from the data of the project."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import click
import msgspec
import pytest

from detaudit.cli import cli
from detaudit.config.choice import load_ops
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import names
from detaudit.config.variations import load_variations
from detaudit.config.yamlfile import load_retired
from detaudit.errors import ExitCode
from detaudit.judge import verdict
from detaudit.model import GateDetail, Reason, Risk, RunError, Warning  # the term for it
from detaudit.model.fact import kind_of, kinds
from docs._generate import catalogue, code, figures, pages, schema
from docs._generate.contents import MADE
from docs._generate.markdown import source, table

ROOT = Path(__file__).parents[2]
PAGES = {path.relative_to(ROOT / "docs").with_suffix("").as_posix(): path.read_text()
         for path in sorted((ROOT / "docs").rglob("*.md"))}  # fmt: skip
ABOUT = {"audit", "recipe", "run", "recording"}
"""What every warning has."""

FIGURES = [name for name in MADE if name.startswith("figure-")]


def test_a_mark_is_filled_in() -> None:
    made = pages.complete("reference/a", "# A\n\n<!-- generated: b -->\n", {"b": lambda: "made"})
    assert made == "# A\n\nmade\n"


def test_a_mark_that_names_nothing_is_an_error() -> None:
    with pytest.raises(KeyError):
        pages.complete("a", "<!-- generated: nothing -->", {})


def test_each_mark_is_known_and_each_function_is_used() -> None:
    marks = [
        name for text in PAGES.values() for name in re.findall(r"^<!-- generated: ([\w-]+) -->$", text, re.MULTILINE)
    ]
    assert sorted(marks) == sorted(MADE)


def test_a_link_to_data_leads_to_its_page() -> None:
    text = (
        "[a](../configs/ops.yaml), [b](../configs/flags/README.md#required-fields), [c](../configs/x.json), [d](e.md)"
    )
    made = "[a](reference/operations.md), [b](reference/flags.md#required-fields), [c](../configs/x.json), [d](e.md)"
    assert pages.complete("tracing", text, {}) == made
    assert pages.complete("reference/x", "[a](../../configs/ops.yaml)", {}) == "[a](operations.md)"


def test_a_picture_of_imports_becomes_a_table() -> None:
    text = "```mermaid\ngraph TD\n    cli --> auditor\n    cli --> report\n    model\n```\n"
    assert "| `cli` | `auditor`, `report` |\n| `model` |  |\n" in pages.complete("architecture", text, {})


def test_the_start_page_links_to_every_page_once() -> None:
    linked = re.findall(r"^- \[[^\]]+\]\(([\w/-]+)\.md\)", PAGES["index"], re.MULTILINE)
    assert sorted(linked) == sorted(set(PAGES) - {"index"})


def test_its_sections_become_menus() -> None:
    made = pages.menus(
        "# A\n\n## First\n\ntext\n\n- [B](b.md): text\n- [C](x/c.md)\n\n## Empty\n\n## Last\n\n- [D](d.md)\n"
    )
    assert made.count("{toctree}") == 2
    assert ":caption: First\n\nb\nx/c\n```" in made


def test_each_flag_is_listed_and_described() -> None:
    text = catalogue.flags()
    for flag in load_catalogue():
        assert f"| `{flag.id}`" in text
        assert f"\n### {flag.id}\n" in text


def test_every_row_of_the_other_tables_is_shown() -> None:
    assert all(f"## {name}\n" in catalogue.recipes() for name in names())
    assert all(f"\n## {row.id}\n" in catalogue.varied() for row in load_variations())
    assert all(f"`{op}`" in catalogue.operations() for row in load_ops() for op in row.ops)
    assert all(f"`{name}`" in catalogue.retired() for row in load_retired() for name in row.names)
    assert all(f"| `{int(status)}` |" in catalogue.exit_statuses() for status in ExitCode)
    assert all(f":prog: detaudit {name}\n" in code.commands() for name in cli.list_commands(click.Context(cli)))


def test_the_schema_has_a_section_for_each_object_and_links_to_them() -> None:
    text = schema.page()
    sections = {name.lower() for name in re.findall(r"^## (\w+)$", text, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= sections
    assert "| `run` | [Audit](#audit) |" in text


def _kinds() -> list[type]:
    return [kind for sort in (RunError, Reason, Warning, GateDetail, Risk) for kind in kinds(sort)]


@pytest.mark.parametrize("kind", _kinds(), ids=lambda kind: kind.__name__)
def test_reports_has_every_fact_with_its_fields(kind: type) -> None:
    name = f"`{kind_of(kind.__name__)}`"
    lines = [line for line in PAGES["reports"].splitlines() if name in line] or [""]
    fields = {one.name for one in msgspec.structs.fields(kind)}
    missing = {one for one in fields - ABOUT if f"`{one}`" not in lines[-1]}
    assert name in lines[-1]
    assert not missing or "the same, and" in lines[-1]


def test_an_option_keeps_the_bracket_of_its_value() -> None:
    lines = [".. option:: --flag <ID[=VALUE>", ".. option:: --runs <N>"]
    code.whole_metavars(lines)
    assert lines == [".. option:: --flag <ID[=VALUE]>", ".. option:: --runs <N>"]


def test_a_cell_does_not_end_at_a_bar() -> None:
    assert table(["a"], [["x|y\nz"]]).splitlines()[-1] == "| x\\|y z |"


def test_an_address_becomes_a_link() -> None:
    assert source("https://www.a.org/b_c (note), lines 1-2") == "[a.org](https://www.a.org/b_c) (note), lines 1-2"


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_valid_and_says_what_it_shows(name: str) -> None:
    drawn = MADE[name]().partition("</figure>")[0]
    assert "\n\n" not in drawn, "a blank line would end the HTML"
    svg = ET.fromstring(drawn.partition("\n")[2].partition("\n<figcaption>")[0])
    assert svg.get("aria-label")
    assert all(0 <= float(part.get("y", 0)) <= 280 for part in svg if part.tag == "text")


def test_the_figures_show_what_reports_print() -> None:
    assert all(f"{figures.bound(runs):.0%} with {runs} runs" in figures.missed() for runs in (2, 5, 30))
    found = verdict.confidence(5)
    assert found is not None
    assert figures.bound(5) == found.max_differing_rate


def test_the_figures_show_the_data() -> None:
    assert len(figures.measured()) == 66
    assert all(0 < rate < 1 for rate in figures.measured())
    rows = figures.races((ROOT / "docs" / "lab" / "jobs.md").read_text())
    assert ("torch_hogwild", 3, 3) in rows
    assert "| in total | 66 |" in figures.fixed_by()
