"""The audit as JSON, as it stands in audit.json."""

from detaudit.model import Audit, to_json


def render(audit: Audit) -> str:
    """See Reporter.render."""
    return to_json(audit).decode()
