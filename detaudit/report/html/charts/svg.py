"""Elements of SVG, in which text is escaped and every number is finite."""

import math
from collections.abc import Iterable

from markupsafe import Markup, escape

from detaudit.report.plain import row


def tag(name: str, *children: str, **attributes: str | float) -> Markup:
    """Return an element; ``class_`` stands for ``class``, and other underscores in names for hyphens."""
    written = [f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items()]
    inside = "".join(child if isinstance(child, Markup) else escape(row(child)) for child in children)
    return Markup(f"<{name}{''.join(written)}>{inside}</{name}>")  # noqa: S704  # all of it is escaped


def joined(parts: Iterable[Markup]) -> Markup:
    """Return elements one after another."""
    return Markup("").join(parts)


def number(value: float) -> str:
    """Return a coordinate. Raises ValueError if it is not finite, which would leave the rest of a path undrawn."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is no coordinate")
    return f"{value:.2f}".rstrip("0").rstrip(".")


def percent(share: float) -> str:
    """Return a part of a width."""
    return f"{number(100 * share)}%"


def _value(value: str | float) -> str:
    return escape(row(value)) if isinstance(value, str) else number(value)
