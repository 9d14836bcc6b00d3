"""How long each run of a bisection took."""

from collections.abc import Sequence

from markupsafe import Markup

from detaudit.report.html.charts.svg import joined, percent, tag
from detaudit.report.messages import figures

BAR = 26


def times(found: Sequence[tuple[str, str, float]]) -> Markup:
    """Return a bar in which each run is as wide as it was long; ``found`` has its trial, its class and its seconds."""
    total = sum(seconds for _, _, seconds in found) or 1.0
    drawn, before, named = [], 0.0, ""
    for trial, kind, seconds in found:
        x, width = before / total, max(0.0, seconds) / total
        drawn.append(tag("rect", class_=f"bar {kind}", x=percent(x), width=percent(width), y=0, height=BAR))
        if trial != named:
            drawn.append(tag("text", trial, x=percent(x), y=BAR + 14))
            named = trial
        before += seconds
    label = figures.times(len(found), total)
    return tag("svg", joined(drawn), class_="fig", width="100%", height=BAR + 20, role="img", aria_label=label)
