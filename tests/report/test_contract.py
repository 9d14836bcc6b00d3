"""The JSON is a contract: a version says what a report has."""

import itertools
import json
import re
from pathlib import Path

import jsonschema

from detaudit.model import SCHEMA_VERSION
from detaudit.report import json as schema

HERE = Path(__file__).parent
SCHEMAS = {
    path.name.removeprefix("report-").removesuffix(".schema.json"): path
    for path in (HERE / "schemas").glob("report-*.schema.json")
}
DOCUMENT = HERE.parents[1] / "docs" / "reports.md"


def test_a_change_of_the_schema_is_deliberate() -> None:
    """If it fails: raise SCHEMA_VERSION if a version with the old schema was released, and keep a copy for it."""
    assert schema.FILE.read_text() == SCHEMAS[SCHEMA_VERSION].read_text()


def test_every_version_has_its_schema() -> None:
    major, _, minor = SCHEMA_VERSION.partition(".")
    before = [f"{major}.{number}" for number in range(int(minor))]
    assert sorted(SCHEMAS) == sorted([*before, SCHEMA_VERSION])


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


def test_the_page_names_every_key_and_value() -> None:
    text = DOCUMENT.read_text()
    definitions = json.loads(schema.FILE.read_text())["$defs"]
    named = {
        (name, value)
        for name, definition in definitions.items()
        for key, field in definition.get("properties", {"": {}}).items()
        for value in (key, *definition.get("enum", ()), *(field.get("enum", ()) if key == "kind" else ()))
        if value
    }
    assert sorted(one for one in named if f"`{one[1]}`" not in text) == []
