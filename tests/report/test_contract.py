"""The JSON is a contract: a version says what a report has, and reports of every older version are still read."""

import itertools
import json
import re
from pathlib import Path

import jsonschema
import pytest

from detaudit import store
from detaudit.model import SCHEMA_VERSION
from detaudit.report import FORMATS, render
from detaudit.report import json as schema

HERE = Path(__file__).parent
OLDER = sorted((HERE / "older").glob("*.json"))
SCHEMAS = {
    path.name.removeprefix("report-").removesuffix(".schema.json"): path
    for path in (HERE / "schemas").glob("report-*.schema.json")
}
DOCUMENT = HERE.parents[1] / "docs" / "reports.md"


def test_a_change_of_the_schema_is_deliberate() -> None:
    """If it fails: raise SCHEMA_VERSION if a version with the old schema was released, and keep a copy for it."""
    assert schema.FILE.read_text() == SCHEMAS[SCHEMA_VERSION].read_text()


def test_every_version_has_its_schema_and_reports() -> None:
    major, _, minor = SCHEMA_VERSION.partition(".")
    before = [f"{major}.{number}" for number in range(int(minor))]
    assert sorted(SCHEMAS) == sorted([*before, SCHEMA_VERSION])
    assert {path.name.partition("-")[0] for path in OLDER} == {*before}


@pytest.mark.parametrize("path", OLDER, ids=lambda path: path.stem)
def test_a_report_of_an_older_version_is_valid_and_is_read_and_printed(path: Path) -> None:
    data = json.loads(path.read_text())
    jsonschema.Draft202012Validator(json.loads(SCHEMAS[data["schema_version"]].read_text())).validate(data)
    report = store.load_report(path)
    assert report.schema_version == data["schema_version"] != SCHEMA_VERSION
    for format_ in FORMATS:
        assert render(report, format_)


def test_a_version_only_adds_keys() -> None:
    versions = sorted(SCHEMAS)
    for older, newer in itertools.pairwise(versions):
        before, after = (json.loads(SCHEMAS[one].read_text())["$defs"] for one in (older, newer))
        for name, definition in before.items():
            assert {*definition.get("properties", ())} <= {*after[name].get("properties", ())}, f"{newer}: {name}"
            assert {*definition.get("required", ())} >= {*after[name].get("required", ())}, f"{newer}: {name}"


def test_the_annotated_example_is_a_valid_report() -> None:
    (text,) = re.findall(r"```jsonc\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    data = json.loads(re.sub(r"\s*// .*", "", text))
    jsonschema.Draft202012Validator(json.loads(schema.FILE.read_text())).validate(data)
    assert data["schema_version"] == SCHEMA_VERSION
