"""A report as JSON; an audit is printed as it is in audit.json."""

from detaudit.model import Report, to_json


def render(report: Report) -> str:
    """See Reporter.render."""
    return to_json(report).decode()
