"""GitLab's Code Quality report: a list of issues, one for each finding that did not pass.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

import msgspec

from detaudit.model import Report
from detaudit.report.findings import Finding, Outcome, findings

_SEVERITIES = {Outcome.FAILED: "critical", Outcome.INCONCLUSIVE: "major", Outcome.WARNED: "minor"}

_NOWHERE = (".gitlab-ci.yml", 1)
"""An issue must have a place: without an audited file, it is the pipeline."""


def render(report: Report) -> str:
    """See Reporter.render."""
    issues = [_issue(finding) for finding in findings(report) if finding.status is not Outcome.PASSED]
    return msgspec.json.format(msgspec.json.encode(issues), indent=2).decode() + "\n"


def _issue(finding: Finding) -> dict[str, object]:
    path, begin = finding.location or _NOWHERE
    line = f"; {finding.culprit.message}" if finding.culprit else ""
    return {
        "description": f"{finding.suite}, {finding.name}: {finding.message}{line}",
        "check_name": finding.rule,
        "fingerprint": finding.fingerprint,
        "severity": _SEVERITIES[finding.status],
        "location": {"path": path, "lines": {"begin": begin}},
    }
