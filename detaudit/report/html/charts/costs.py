"""What flags cost: the time of a training with a flag over that without it."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from detaudit.report.html.charts.scale import linear
from detaudit.report.html.charts.svg import joined, percent, tag
from detaudit.report.messages import figures

ROW = 40


@dataclass(frozen=True)
class Cost:
    """What a flag costs: the median of so many ``pairs``, and its range; one not ``needed`` is an alternative."""

    flag: str
    cost: float
    ends: tuple[float, float]
    pairs: int
    needed: bool = True


def costs(found: Sequence[Cost]) -> Markup:
    """Return a row for each flag with its cost and the range of it; an alternative has an empty dot."""
    scale = linear([0.0, 1.0, *(end for one in found for end in one.ends), 1.5])
    height = ROW * len(found)
    one = percent(0.9 * scale.at(1.0))
    drawn = [
        tag("line", class_="ax", x1=one, x2=one, y1=0, y2=height),
        tag("text", "1x", x=one, y=height + 14, text_anchor="middle"),
    ]
    for row, shown in enumerate(found):
        y, x = row * ROW + 26, percent(0.9 * scale.at(shown.cost))
        least, most = (percent(0.9 * scale.at(end)) for end in shown.ends)
        drawn += [
            tag("text", shown.flag, class_="s", x=0, y=y - 12),
            tag("line", class_="ln", x1=least, x2=most, y1=y, y2=y),
            tag("circle", class_="dot" if shown.needed else "dot empty", cx=x, cy=y, r=4.5),
            tag("text", figures.cost(shown.cost, shown.ends, shown.pairs), x="100%", y=y - 12, text_anchor="end"),
        ]
    label = ", ".join(f"{one.flag} {figures.cost(one.cost, one.ends, one.pairs)}" for one in found)
    return tag("svg", joined(drawn), class_="fig", width="100%", height=height + 20, role="img", aria_label=label)
