"""Turn a page as it is kept into a page of the site: a code host shows the former, so it has no directives."""

import os
import re
from collections.abc import Callable, Mapping

from docs._generate import contents

_MARK = re.compile(r"^<!-- generated: (?P<name>[\w-]+) -->$", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()(?P<path>\.\./[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")
_MERMAID = re.compile(r"^```mermaid\n(?P<graph>.*?)^```$", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r"^- \[(?P<title>[^\]]+)\]\((?P<path>[\w/-]+)\.md\)", re.MULTILINE)
_SECTION = re.compile(r"^## (?P<title>.+)\n(?P<text>(?:(?!## ).*\n?)*)", re.MULTILINE)

SHOWN_BY = {
    "configs/flags/README.md": "reference/flags",
    "configs/ops.yaml": "reference/operations",
    "configs/retired.yaml": "reference/flags",
    "configs/variations.yaml": "reference/variations",
}
"""Data that a page links to on a code host, with the page that shows it on the site."""


def complete(name: str, text: str, made: Mapping[str, Callable[[], str]] = contents.MADE) -> str:
    """Return the text of the page ``name`` for the site. Raises KeyError for a mark that names nothing."""
    text = _MARK.sub(lambda mark: made[mark["name"]](), text)
    text = _LINK.sub(lambda link: _to_page(name, link), text)
    text = _MERMAID.sub(lambda block: _table(block["graph"]), text)
    return text + menus(text) if name == "index" else text


def menus(text: str) -> str:
    """Return a menu for each section of the start page: what it links to, in its order."""
    made = []
    for section in _SECTION.finditer(text):
        pages = [item["path"] for item in _ITEM.finditer(section["text"])]
        if pages:
            made.append(f"```{{toctree}}\n:hidden:\n:caption: {section['title']}\n\n" + "\n".join(pages) + "\n```")
    return "\n\n" + "\n\n".join(made) + "\n"


def _to_page(name: str, link: re.Match[str]) -> str:
    here = os.path.dirname(name)
    target = os.path.normpath(os.path.join("docs", here, link["path"]))
    page = SHOWN_BY.get(target)
    return f"{os.path.relpath(page, here or '.')}.md{link['anchor'] or ''}" if page else link[0]


def _table(graph: str) -> str:
    """Return a graph of imports as a table, which needs no script to be drawn."""
    arrows: dict[str, list[str]] = {}
    for line in graph.splitlines()[1:]:
        above, _, below = (part.strip() for part in line.partition("-->"))
        arrows.setdefault(above, []).extend([below] if below else [])
    rows = [f"| `{above}` | {', '.join(f'`{one}`' for one in below)} |" for above, below in arrows.items()]
    return "\n".join(["| folder | imports |", "|---|---|", *rows])
