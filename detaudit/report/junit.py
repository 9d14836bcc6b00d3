"""JUnit XML: a suite for each audit and a case for each finding, as most CI systems read it (junit-10 of xUnit)."""

import shlex
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from detaudit import __version__
from detaudit.model import Report
from detaudit.report.findings import Finding, Outcome, findings
from detaudit.report.plain import line

_ELEMENTS = {Outcome.FAILED: "failure", Outcome.INCONCLUSIVE: "error"}


def render(report: Report) -> str:
    """See Reporter.render. The text is ASCII, which is valid in any encoding of stdout."""
    suites: dict[str, list[Finding]] = {}
    for finding in findings(report):
        suites.setdefault(finding.suite, []).append(finding)
    root = ET.Element("testsuites", _counts("detaudit", [one for suite in suites.values() for one in suite]))
    for name, cases in suites.items():
        suite = ET.SubElement(root, "testsuite", _counts(name, cases))
        properties = ET.SubElement(suite, "properties")
        ET.SubElement(properties, "property", name="detaudit", value=__version__)
        ET.SubElement(properties, "property", name="command", value=line(shlex.join(report.command)))
        for case in cases:
            _case(suite, case)
        if report.warnings:
            lines = [f"warning: {line(one.sentence())}" for one in report.warnings]
            ET.SubElement(suite, "system-err").text = "\n".join(lines)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, "us-ascii").decode()}\n'


def _counts(name: str, cases: Sequence[Finding]) -> dict[str, str]:
    return {
        "name": name,
        "tests": str(len(cases)),
        "failures": str(sum(case.status is Outcome.FAILED for case in cases)),
        "errors": str(sum(case.status is Outcome.INCONCLUSIVE for case in cases)),
        "time": f"{sum(case.seconds or 0.0 for case in cases):.3f}",
    }


def _case(suite: ET.Element, finding: Finding) -> None:
    case = ET.SubElement(suite, "testcase", classname=finding.suite, name=finding.name)
    if finding.seconds is not None:
        case.set("time", f"{finding.seconds:.3f}")
    text = f"{finding.message}\n{finding.detail}".strip()
    if finding.status in _ELEMENTS:
        element = ET.SubElement(case, _ELEMENTS[finding.status], type=finding.rule, message=finding.message)
        element.text = text
    else:
        warning = "warning: " if finding.status is Outcome.WARNED else ""
        ET.SubElement(case, "system-out").text = warning + text
