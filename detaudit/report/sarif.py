"""SARIF 2.1.0, which code scanning reads: a result for each finding that did not pass.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

import shlex
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

import msgspec

from detaudit import __version__
from detaudit.errors import ExitCode
from detaudit.model import Report, exit_code
from detaudit.report.findings import RULES, Finding, Outcome, findings
from detaudit.report.patches import Replacement
from detaudit.report.plain import line

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {
    Outcome.FAILED: "error",
    Outcome.INCONCLUSIVE: "warning",
    Outcome.WARNED: "note",
    Outcome.PASSED: "note",
}
"""A finding that passed is only reported with changes that are not made yet."""


def render(report: Report) -> str:
    """See Reporter.render."""
    problems = [one for one in findings(report) if one.status is not Outcome.PASSED or one.changes]
    rules = list(dict.fromkeys(one.rule for one in problems))
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "detaudit", "version": __version__, "rules": [_rule(one) for one in rules]}
                },
                "invocations": [_invocation(report)],
                "columnKind": "unicodeCodePoints",
                "results": [_result(one, rules.index(one.rule)) for one in problems],
            }
        ],
    }
    return msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n"


def _rule(rule: str) -> dict[str, Any]:
    definition = RULES[rule]
    return {
        "id": rule,
        "shortDescription": {"text": definition.requirement},
        "help": {"text": definition.help.replace("`", ""), "markdown": definition.help},
        "defaultConfiguration": {"level": "error"},
    }


def _invocation(report: Report) -> dict[str, Any]:
    status = exit_code(report)
    return {
        "executionSuccessful": status in (ExitCode.DETERMINISTIC, ExitCode.NONDETERMINISTIC),
        "exitCode": int(status),
        "exitCodeDescription": status.name.lower(),
        "commandLine": line(shlex.join(report.command)),
        "toolExecutionNotifications": [
            {"level": "warning", "message": {"text": line(one.sentence())}} for one in report.warnings
        ],
    }


def _result(finding: Finding, index: int) -> dict[str, Any]:
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS[finding.status],
        "message": {"text": f"{finding.suite}, {finding.name}: {finding.message}\n{finding.detail}".strip()},
        "locations": [_location(*finding.location)] if finding.location else [],
        "partialFingerprints": {"finding/v1": finding.fingerprint},
        **({"fixes": [_fix(finding)]} if finding.changes else {}),
    }


def _fix(finding: Finding) -> dict[str, Any]:
    files = dict.fromkeys(one.file for one in finding.changes)
    return {
        "description": {"text": finding.message},
        "artifactChanges": [
            {
                "artifactLocation": _artifact(file),
                "replacements": [_replacement(one) for one in finding.changes if one.file == file],
            }
            for file in files
        ],
    }


def _replacement(change: Replacement) -> dict[str, Any]:
    """Return what replaces whole lines with their ends; the last line of a file may have none."""
    end = {"endLine": change.line + len(change.old), "endColumn": 1}
    if change.old and not change.old[-1].endswith("\n"):
        end = {"endLine": change.line + len(change.old) - 1}
    return {
        "deletedRegion": {"startLine": change.line, "startColumn": 1, **end},
        "insertedContent": {"text": "".join(change.new)},
    }


def _location(file: str, begin: int) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": _artifact(file), "region": {"startLine": begin}}}


def _artifact(file: str) -> dict[str, Any]:
    path = PurePosixPath(file)
    return {"uri": path.as_uri()} if path.is_absolute() else {"uri": quote(str(path)), "uriBaseId": "%SRCROOT%"}
