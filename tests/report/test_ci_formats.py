"""Formats of CI systems: valid by their schemas, and read back with any text in them."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import msgspec
import pytest
import xmlschema
from hypothesis import given, settings
from hypothesis import strategies as st

from detaudit.errors import ExitCode
from detaudit.model import Audit, Check, Source, SourceKind
from detaudit.model.problems import ArtifactUnusable, RunUnusable
from detaudit.model.warnings import RecorderFailed
from detaudit.report import render
from detaudit.report.findings import Outcome, findings
from detaudit.report.plain import line
from tests.report.bisections import BISECTIONS
from tests.report.checks import CHECK
from tests.report.test_reporters import ALL, AUDITS

SCHEMAS = Path(__file__).parent / "schemas"
FORMATS = ("junit", "github", "gitlab", "sarif")


@cache
def xsd() -> Any:
    return xmlschema.XMLSchema(str(SCHEMAS / "junit-10.xsd"))


@cache
def validator(name: str) -> Any:
    schema = json.loads((SCHEMAS / name).read_text())
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


def read_junit(text: str) -> ET.Element:
    xsd().validate(text)
    return ET.fromstring(text)


def read_gitlab(text: str) -> list[Any]:
    issues = json.loads(text)
    validator("gitlab-code-quality.json").validate(issues)
    prints = [issue["fingerprint"] for issue in issues]
    assert len(set(prints)) == len(prints)
    assert isinstance(issues, list)
    return issues


def read_sarif(text: str) -> dict[str, Any]:
    log = json.loads(text)
    validator("sarif-2.1.0-rtm.5.json").validate(log)
    run = log["runs"][0]
    assert isinstance(run, dict)
    return run


def read_github(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Read workflow commands as GitHub's runner does: properties end at the first ``::``, %25 is undone last."""
    commands = []
    for one in text.removesuffix("\n").split("\n"):
        found = re.fullmatch(r"::(\w+) (.*?)::(.*)", one)
        assert found, one
        pairs = [pair.partition("=") for pair in found[2].split(",")]
        commands.append((found[1], {key: undone(value, ":,") for key, _, value in pairs}, undone(found[3])))
    return commands


def undone(text: str, also: str = "") -> str:
    for letter in f"{also}\r\n%":
        text = text.replace(f"%{ord(letter):02X}", letter)
    return text


@pytest.mark.parametrize("name", ALL)
def test_every_report_fits_the_schemas(name: str) -> None:
    read_junit(render(ALL[name], "junit"))
    read_gitlab(render(ALL[name], "gitlab"))
    read_sarif(render(ALL[name], "sarif"))
    read_github(render(ALL[name], "github"))


def test_the_schemas_reject_wrong_reports() -> None:
    with pytest.raises(xmlschema.XMLSchemaValidationError):
        read_junit(render(CHECK, "junit").replace("<failure", "<fault").replace("</failure", "</fault"))
    with pytest.raises(jsonschema.ValidationError):
        read_gitlab(render(CHECK, "gitlab").replace('"critical"', '"bad"'))
    with pytest.raises(jsonschema.ValidationError):
        read_sarif(render(CHECK, "sarif").replace('"startLine"', '"start"'))


def test_junit_distinguishes_failed_inconclusive_and_warned() -> None:
    suites = read_junit(render(CHECK, "junit")).findall("testsuite")
    assert [suite.get("name") for suite in suites] == ["digits", "race"]
    found = {
        (case.get("classname"), case.get("name")): [part.tag for part in case] for case in suites[0].findall("testcase")
    }
    assert found == {
        ("digits", "repeatable"): ["system-out"],
        ("digits", "same as baseline"): ["system-out"],
        ("digits", "same after resume"): ["failure"],
    }
    assert [part.tag for case in suites[1].findall("testcase") for part in case] == ["failure", "error"]
    assert (suites[1].get("failures"), suites[1].get("errors"), suites[1].get("time")) == ("1", "1", "6.500")


def test_annotations_are_at_the_culprit_and_the_worst_come_first() -> None:
    commands = read_github(render(CHECK, "github"))
    assert [command for command, _, _ in commands] == [
        "error",
        "error",
        "notice",
        "notice",
        "notice",
        "warning",
        "warning",
        "warning",
    ]
    titles = [properties["title"] for command, properties, _ in commands if command == "notice"]
    assert titles == [  # what could not be compared is no error, and comes before what passed
        "detaudit: race: same as baseline",
        "detaudit: digits: same as baseline",
        "detaudit: digits: repeatable",
    ]
    places = {properties["title"]: (properties.get("file"), properties.get("line")) for _, properties, _ in commands}
    assert places["detaudit: race: repeatable"] == ("train.py", "7")
    assert places["detaudit: race: same as baseline"] == ("race.py", None)
    assert places["detaudit: digits: repeatable"] == (None, None)


def test_gitlab_gets_what_did_not_pass_each_with_a_place() -> None:
    issues = read_gitlab(render(CHECK, "gitlab"))
    found = {(one["check_name"], one["severity"]): one["location"] for one in issues}
    assert found == {
        ("same-as-baseline", "minor"): {"path": "examples/digits.py", "lines": {"begin": 1}},
        ("same-after-resume", "critical"): {"path": "examples/digits.py", "lines": {"begin": 1}},
        ("repeatable", "critical"): {"path": "train.py", "lines": {"begin": 7}},
        ("same-as-baseline", "major"): {"path": "race.py", "lines": {"begin": 1}},
    }
    assert read_gitlab(render(ALL["compared-identical"], "gitlab")) == []


@pytest.mark.parametrize("report", [AUDITS["nondeterministic"], CHECK, BISECTIONS["fixed"]])
def test_an_interruption_is_no_pass(report: Audit | Check) -> None:
    passed = [one for one in findings(report) if one.status is Outcome.PASSED]
    unfinished = msgspec.structs.replace(report, interrupted=True)
    found = findings(unfinished)
    assert [one for one in found if one.status is Outcome.PASSED] == passed
    assert Outcome.INCONCLUSIVE in {one.status for one in found}
    assert read_junit(render(unfinished, "junit")).get("errors") != "0"
    assert read_sarif(render(unfinished, "sarif"))["invocations"][0]["exitCode"] == ExitCode.INTERRUPTED


def test_nothing_checked_and_interrupted_is_no_pass() -> None:
    nothing = msgspec.structs.replace(CHECK, audits=(), interrupted=True)
    assert [(one.suite, one.rule, one.status) for one in findings(nothing)] == [
        ("detaudit", "complete", Outcome.INCONCLUSIVE)
    ]


@pytest.mark.parametrize(
    ("name", "successful", "status"),
    [
        ("check", True, 1),
        ("inconclusive", False, 130),
        ("fixed", True, 0),
        ("compared-identical", True, 0),
        ("compared-different", True, 1),
    ],
)
def test_sarif_holds_the_exit_status(name: str, successful: bool, status: int) -> None:
    run = read_sarif(render(ALL[name], "sarif"))
    invocation = run["invocations"][0]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (successful, status)
    assert bool(run["results"]) == (status != 0)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])


def test_the_fingerprint_stays_the_same_if_the_line_moves() -> None:
    def moved(line_: int) -> Audit:
        audit = AUDITS["nondeterministic"]
        source = Source(file="train.py", line=line_, kind=SourceKind.SEED, call="seed")
        group = msgspec.structs.replace(audit.groups[0], sources=(source,))
        return msgspec.structs.replace(audit, groups=(group, *audit.groups[1:]))

    a, b = (read_gitlab(render(moved(number), "gitlab"))[0] for number in (7, 70))
    assert a["location"] != b["location"]
    assert a["fingerprint"] == b["fingerprint"]


def test_a_file_whose_name_is_blank_is_no_place() -> None:
    audit = AUDITS["nondeterministic"]
    source = Source(file=" ", line=7, kind=SourceKind.SEED, call="seed")
    group = msgspec.structs.replace(audit.groups[0], sources=(source,))
    (issue, *_) = read_gitlab(render(msgspec.structs.replace(audit, groups=(group, *audit.groups[1:])), "gitlab"))
    assert issue["location"] == {"path": "train.py", "lines": {"begin": 1}}


def test_a_file_outside_the_repository_is_a_whole_uri_and_spaces_are_quoted() -> None:
    def uri(file: str) -> str:
        audit = AUDITS["nondeterministic"]
        source = Source(file=file, line=7, kind=SourceKind.SEED, call="seed")
        group = msgspec.structs.replace(audit.groups[0], sources=(source,))
        results = read_sarif(render(msgspec.structs.replace(audit, groups=(group,)), "sarif"))["results"]
        return str(results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])

    assert uri("/elsewhere/a b.py") == "file:///elsewhere/a%20b.py"
    assert uri("my code/a%.py") == "my%20code/a%25.py"


HOSTILE = '\x1b[31mred\x1b[0m \x00\x07\ud800 ]]> <b> & "q" 100%25\r\n::error::x, y: z ￿ é 字'


def hostile(text: str) -> Audit:
    """Return an audit with ``text`` wherever a script, a path or a recipe can put some."""
    audit = AUDITS["inconclusive"]
    group = audit.groups[0]
    runs = [msgspec.structs.replace(run, stderr_tail=(text, text) if run.stderr_tail else ()) for run in group.runs]
    recipe = msgspec.structs.replace(group.recipe, name=f"x{text}")
    reason = RunUnusable(run=1, errors=(ArtifactUnusable(path="because", detail=text),))
    group = msgspec.structs.replace(group, recipe=recipe, reason=reason, runs=tuple(runs))
    command = ("detaudit", "run", f"{text}.py")
    return msgspec.structs.replace(
        audit, groups=(group,), command=command, warnings=(RecorderFailed(where=text, error=text),)
    )


def reads_back(text: str) -> None:
    audit = hostile(text)
    message = line(f"run 1: because {text}")
    case = read_junit(render(audit, "junit")).find("testsuite/testcase")
    assert case is not None
    assert case.get("name") == line(f"x{text}")
    assert str(case[0].get("message")).startswith(message)
    issue = read_gitlab(render(audit, "gitlab"))[0]
    assert message in issue["description"]
    command, properties, found = read_github(render(audit, "github"))[0]
    assert (command, properties["title"].endswith(line(f"x{text}"))) == ("error", True)
    assert found.startswith(message)
    assert message in read_sarif(render(audit, "sarif"))["results"][0]["message"]["text"]


def test_nothing_that_a_script_writes_breaks_a_format() -> None:
    reads_back(HOSTILE)
    for format_ in FORMATS:
        text = render(hostile(HOSTILE), format_)
        text.encode()
        assert not set(text) & {"\x1b", "\x00", "\x07"}
        assert "red" in text
        assert "[31m" not in text


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("%:,\r\n\x1b[]0m\x00 =2A\ud800"))))
def test_any_text_is_read_back(text: str) -> None:
    reads_back(text)
