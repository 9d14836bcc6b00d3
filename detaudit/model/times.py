"""Points in time, as reports write them."""

from datetime import datetime, timezone


def now() -> str:
    """Return the time, to the second and in UTC, as ISO 8601 writes it."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
