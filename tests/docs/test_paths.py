"""Files that documents name, and headings that they link to, exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "CONTRIBUTING.md", *(path for path in ROOT.glob("docs/**/*.md") if "lab" not in path.parts)]
BASES = (ROOT, ROOT / "detaudit", ROOT / "detaudit" / "recorder")
OF_USERS = {"examples/train.py"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_names_files_that_exist(path: Path) -> None:
    named = set(re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", path.read_text())) - OF_USERS
    assert not [name for name in named if not any((base / name).exists() for base in BASES)]


LINKING = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("configs/**/*.md")])


def headings(text: str) -> set[str]:
    """Return the anchors of the headings of a page, as a code host makes them."""
    named = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", name).lower() for name in named)
    return {re.sub(r"[^\w\- ]", "", name).replace(" ", "-") for name in plain}


def broken(path: Path) -> list[str]:
    """Return the links of a page, but for those to other sites, that lead nowhere."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]+))?\)", text)
    wrong = []
    for name, anchor in links:
        target = path.parent / name if name else path
        generated = "<!-- generated: " in target.read_text() if target.suffix == ".md" and target.is_file() else False
        if not target.exists() or (anchor and not generated and anchor not in headings(target.read_text())):
            wrong.append(f"{name}#{anchor}" if anchor else name)
    return wrong


@pytest.mark.parametrize("path", LINKING, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_links_to_files_and_headings_that_exist(path: Path) -> None:
    assert not broken(path)


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# `A` [b](c.md), d\n\n```sh\n# comment\n```\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[](https://example.org#a) [](other.md#a-b-d) [](other.md#comment) [](gone.md) [](#here)\n## Here\n"
    )
    assert broken(page) == ["other.md#comment", "gone.md"]
