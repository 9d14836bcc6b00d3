"""Workflow commands of GitHub Actions: an annotation for each finding, at the culprit if it is known.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from detaudit.model import Report
from detaudit.report.findings import Finding, Outcome, findings
from detaudit.report.patches import Replacement
from detaudit.report.plain import line, plain

_COMMANDS = {
    Outcome.FAILED: "error",
    Outcome.INCONCLUSIVE: "error",
    Outcome.WARNED: "warning",
    Outcome.PASSED: "notice",
}
"""GitHub shows ten of each per step."""


def render(report: Report) -> str:
    """See Reporter.render."""
    order = ["error", "warning", "notice"]
    ordered = sorted(findings(report), key=lambda one: (order.index(_level(one)), list(_COMMANDS).index(one.status)))
    lines = [_annotation(one) for one in ordered]
    lines += [_suggestion(change) for one in ordered for change in one.changes]
    lines += [_command("warning", {"title": "detaudit"}, line(one.sentence())) for one in report.warnings]
    return "".join(f"{text}\n" for text in lines)


def _level(finding: Finding) -> str:
    """Return the command for a finding. What was not compared is no error in anything: the exit status blocks."""
    return _COMMANDS[finding.status] if finding.compared else "notice"


def _annotation(finding: Finding) -> str:
    properties = {}
    if finding.culprit is not None:
        properties = {"file": finding.culprit.file, "line": str(finding.culprit.line)}
    elif finding.script and finding.status is not Outcome.PASSED:
        properties = {"file": finding.script}
    properties["title"] = f"detaudit: {finding.suite}: {finding.name}"
    more = finding.detail if finding.status is not Outcome.PASSED else ""
    return _command(_level(finding), properties, f"{finding.message}\n{more}".strip())


def _suggestion(change: Replacement) -> str:
    """Return an annotation with the lines that a change puts in place of these: a job cannot make a review comment."""
    last = max(change.line, change.line + len(change.old) - 1)
    properties = {"file": line(change.file), "line": str(change.line), "endLine": str(last)}
    properties["title"] = f"detaudit: {'replace' if change.old else 'insert above'}"
    new = plain("".join(change.new)).rstrip("\n")
    return _command("notice", properties, new or "delete these lines")


def _command(name: str, properties: dict[str, str], message: str) -> str:
    words = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in properties.items())
    return f"::{name} {words}::{_escaped(message)}"


def _escaped(text: str, also: str = "") -> str:
    """Return ``text`` with characters that end a command, or that are in ``also``, as %XX; % itself comes first."""
    for letter in "%\r\n" + also:
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text
