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
    issues = [_issue(found) for found in findings(report) if found.status is not Outcome.PASSED]
    return msgspec.json.format(msgspec.json.encode(issues), indent=2).decode() + "\n"


def _issue(found: Finding) -> dict[str, object]:
    path, begin = found.place or _NOWHERE
    line = f"; {found.culprit.message}" if found.culprit else ""
    return {
        "description": f"{found.suite}, {found.name}: {found.message}{line}",
        "check_name": found.rule,
        "fingerprint": found.fingerprint,
        "severity": _SEVERITIES[found.status],
        "location": {"path": path, "lines": {"begin": begin}},
    }
