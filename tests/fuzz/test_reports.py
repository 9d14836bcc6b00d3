"""What is printed: whatever texts a report holds, each format stays what it is, and controls nothing."""

import re
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import click
import msgspec
import pytest

from detaudit.model import Report
from detaudit.report import FORMATS, render
from tests.fuzz.fuzzing import fuzz, profiles, text
from tests.report.test_ci_formats import read_github, read_gitlab, read_junit, read_sarif, xsd
from tests.report.test_reporters import ALL

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
FENCE = re.compile(r"^(`{3,})[a-z]*$")
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)")
ACTIVE = re.compile(r"(?<!\\)<|\](?!\\)\(")
"""What begins an element of HTML, or the target of a link."""

Path = tuple[Any, ...]


def leaves(tree: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all texts in a tree."""
    if isinstance(tree, str):
        yield path
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from leaves(value, (*path, key))


def put(tree: Any, path: Path, value: str) -> Any:
    if not path:
        return value
    copied: Any = tree.copy()
    copied[path[0]] = put(tree[path[0]], path[1:], value)
    return copied


@cache
def free(name: str) -> tuple[Any, tuple[Path, ...]]:
    """Return a report as a tree, and the places of texts that may be any."""
    tree = msgspec.json.decode(msgspec.json.encode(ALL[name]))
    found = []
    for path in leaves(tree):
        try:
            report = msgspec.convert(put(tree, path, "x"), type(ALL[name]))
        except msgspec.ValidationError:
            continue
        if path[-1] not in ("sum_of_weights", "final_loss", "sum", "schema_version") and report != ALL[name]:
            found.append(path)
    return tree, tuple(found)


def made(random: Random) -> tuple[Report, bool]:
    """Return a report, and whether it is checked against the schemas, which takes long."""
    name = random.choice(list(ALL))
    tree, places = free(name)
    for place in places if random.random() < 0.3 else random.sample(places, min(len(places), 3)):
        tree = put(tree, place, random.choice(("{}", "x{}", "{} y", "{}.py")).replace("{}", text(random)))
    return msgspec.convert(tree, type(ALL[name])), random.random() < 0.1


def outside_of_code(markdown: str) -> Iterator[str]:
    """Yield the lines of Markdown that are not in fences, without their spans of code."""
    fence = ""
    for line in markdown.split("\n"):
        found = FENCE.match(line)
        if fence:
            fence = "" if found and len(found[1]) >= len(fence) else fence
        elif found:
            fence = found[1]
        else:
            yield line if line.startswith("|") else SPAN.sub("", line)  # a span ends with its cell
    assert not fence


def check_markdown(markdown: str) -> None:
    columns = 0
    for line in outside_of_code(markdown):
        assert not ACTIVE.search(line), line
        found = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not columns or not found or found == columns, line
        columns = found
        assert not re.match(r"(# |=+$|-{3,}$)", line), line


def check_all(report: Report, schemas: bool) -> None:
    for format_ in FORMATS:
        printed = render(report, format_)
        printed.encode()
        if format_ == "json":
            msgspec.json.decode(printed, type=type(report))
            continue
        assert not CONTROLS.search(printed), format_
        assert "##[" not in printed
        if format_ == "github":
            read_github(printed)
            continue
        assert not [line for line in printed.split("\n") if line.lstrip().startswith("::")], format_
        if format_ == "markdown":
            check_markdown(printed)
        if schemas:
            {"junit": read_junit, "gitlab": read_gitlab, "sarif": read_sarif}.get(format_, len)(printed)


@profiles("reports")
def test_any_text_can_be_printed(inputs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click, "style", lambda text, **_: text)  # its sequences are ours
    xsd()  # once, because it reads a file
    fuzz("reports", inputs, made, lambda one: check_all(*one))
