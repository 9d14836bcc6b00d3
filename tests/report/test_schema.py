"""The published JSON Schema: current, and valid for every report."""

import json
from typing import Any

import jsonschema
import msgspec
import pytest

from detaudit.model import SCHEMA_VERSION, Report
from detaudit.report import json as schema
from detaudit.report import render
from tests.report.test_reporters import ALL

SCHEMA = json.loads(schema.FILE.read_text())


def test_the_file_is_current() -> None:
    assert schema.FILE.read_text() == schema.text(), "write it with python -m detaudit.report.json"


def test_it_is_a_schema_of_this_version() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["version"] == SCHEMA_VERSION
    assert SCHEMA["$id"].endswith(f":{SCHEMA_VERSION}")
    kinds = {one["properties"]["kind"]["enum"][0]: one for one in SCHEMA["$defs"].values() if is_report(one)}
    assert set(kinds) == {"run", "bisect", "vary", "trace", "fix", "resume", "compare", "check"}
    assert {one["properties"]["schema_version"]["const"] for one in kinds.values()} == {SCHEMA_VERSION}


def is_report(definition: dict[str, Any]) -> bool:
    return "schema_version" in definition.get("properties", {})


@pytest.mark.parametrize("name", ALL)
def test_every_report_is_valid_and_read_back(name: str) -> None:
    text = render(ALL[name], "json")
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))
    assert msgspec.json.decode(text, type=Report) == ALL[name]


def test_a_wrong_report_is_not_valid() -> None:
    report = json.loads(render(ALL["check"], "json"))
    for wrong in ({**report, "kind": "audit"}, {**report, "schema_version": "0.9"}, {**report, "audits": None}):
        assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(wrong)
