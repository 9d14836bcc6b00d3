"""A share as a bar. Its number stands beside it."""

from markupsafe import Markup

from detaudit.report.html.charts.svg import joined, percent, tag

HEIGHT = 14


def bar(share: float) -> Markup:
    """Return a bar of which this share, from 0 to 1, differs."""
    whole = tag("rect", class_="s0", x=0, width="100%", y=0, height=HEIGHT)
    part = tag("rect", class_="bar diff", x=0, width=percent(min(1.0, max(0.0, share))), y=0, height=HEIGHT)
    return tag("svg", joined((whole, part)), width="100%", height=HEIGHT, aria_hidden="true")
