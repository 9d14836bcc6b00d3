"""What flags cost: the time of a training with a flag over that without it."""

from collections.abc import Sequence

from markupsafe import Markup

from detaudit.report.html.charts.scale import linear
from detaudit.report.html.charts.svg import joined, percent, tag
from detaudit.report.messages import figures

ROW = 40


def costs(found: Sequence[tuple[str, float, bool]]) -> Markup:
    """Return a row for each flag with its cost; one that is not needed, but may replace it, has an empty dot."""
    scale = linear([0.0, 1.0, *(cost for _, cost, _ in found), 1.5])
    height = ROW * len(found)
    one = percent(0.9 * scale.at(1.0))
    drawn = [
        tag("line", class_="ax", x1=one, x2=one, y1=0, y2=height),
        tag("text", "1x", x=one, y=height + 14, text_anchor="middle"),
    ]
    for row, (flag, cost, needed) in enumerate(found):
        y, x = row * ROW + 26, percent(0.9 * scale.at(cost))
        drawn += [
            tag("text", flag, class_="s", x=0, y=y - 12),
            tag("line", class_="ln", x1=one, x2=x, y1=y, y2=y),
            tag("circle", class_="dot" if needed else "dot empty", cx=x, cy=y, r=4.5),
            tag("text", f"{cost:.2f}x", class_="s", x="100%", y=y + 4, text_anchor="end"),
        ]
    label = figures.costs([(flag, cost) for flag, cost, _ in found])
    return tag("svg", joined(drawn), class_="fig", width="100%", height=height + 20, role="img", aria_label=label)
