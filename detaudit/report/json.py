"""A report as JSON, and the schema of all reports."""

import inspect
import json
from pathlib import Path
from typing import Any

import msgspec

from detaudit.model import SCHEMA_VERSION, Report, to_json

# A report as JSON; an audit is printed as it is in audit.json.


def render(report: Report) -> str:
    """See Reporter.render."""
    return to_json(report).decode()


# The JSON Schema of all reports, for programs that read them.
#
# ``python -m detaudit.report.json`` writes it again after a change of the model.


FILE = Path(__file__).with_name("report.schema.json")


def report_schema() -> dict[str, Any]:
    """Return the schema of ``detaudit.model.Report``: audit.json, and the output of ``--format json``."""
    schema = msgspec.json.schema(Report)
    for definition in schema["$defs"].values():
        if "description" in definition:  # a docstring, whose indentation Python removes from 3.13 on
            definition["description"] = inspect.cleandoc(definition["description"])
        version = definition.get("properties", {}).get("schema_version")
        if version is not None:
            version["const"] = SCHEMA_VERSION
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:detaudit:report:{SCHEMA_VERSION}",
        "title": "A report of detaudit",
        "description": (
            "What `detaudit run`, `bisect`, `trace`, `check` and `compare` print with --format json; `kind` says which "
            "it is. The results folder of an audit has it as audit.json, that of a check as check.json."
        ),
        "version": SCHEMA_VERSION,
        **schema,
    }


def text() -> str:
    """Return the schema as it ships."""
    return json.dumps(report_schema(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
