"""The diagnosis of a machine in words, and as JSON."""

import json

import click
import msgspec

from detaudit.model import SCHEMA_VERSION, Diagnosis
from detaudit.report import catalogue
from tests.report.facts import RISKS
from tests.report.test_reporters import assert_golden

DIAGNOSIS = Diagnosis(
    schema_version=SCHEMA_VERSION,
    python="/usr/bin/python3",
    environment={"cpus": 2},
    relevant={"python": "3.11.7", "torch": "2.13.0", "cpu": "AMD EPYC, AVX2"},
    risks=RISKS,
)


def test_a_diagnosis_is_the_golden_one() -> None:
    assert_golden("doctor.table", click.unstyle(catalogue.render(DIAGNOSIS, "table")))


def test_a_machine_without_risks() -> None:
    found = msgspec.structs.replace(DIAGNOSIS, risks=())
    assert click.unstyle(catalogue.render(found, "table")).endswith("No risks found on this machine.\n")


def test_a_diagnosis_as_json_has_the_kinds_of_its_risks() -> None:
    found = json.loads(catalogue.render(DIAGNOSIS, "json"))
    assert (found["kind"], found["schema_version"]) == ("doctor", SCHEMA_VERSION)
    assert found["risks"][0]["kind"] == "variables-unset"
