"""Values of several runs as dots on one line."""

from collections.abc import Sequence

from markupsafe import Markup

from detaudit.report.html.charts.scale import Scale
from detaudit.report.html.charts.svg import joined, percent, tag

HEIGHT = 30


def strip(values: Sequence[tuple[float, str]], scale: Scale, label: str) -> Markup:
    """Return a dot for each value with the class that colors it, on an axis that other strips share."""
    places = [0.02 + 0.96 * scale.at(value) for value, _ in values]
    line = tag("line", class_="ax", x1=percent(min(places)), x2=percent(max(places)), y1=HEIGHT / 2, y2=HEIGHT / 2)
    dots = [
        tag("circle", class_=f"dot {kind}", cx=percent(place), cy=HEIGHT / 2, r=4.5)
        for place, (_, kind) in zip(places, values, strict=True)
    ]
    return tag("svg", joined((line, *dots)), width="100%", height=HEIGHT, role="img", aria_label=label)


def axis(scale: Scale) -> Markup:
    """Return the values that are written below the strips."""
    texts = [
        tag("text", text, x=percent(0.02 + 0.96 * scale.at(value)), y=12, text_anchor="middle")
        for value, text in scale.ticks
    ]
    return tag("svg", joined(texts), width="100%", height=16, aria_hidden="true")
