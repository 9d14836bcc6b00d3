"""What a number of matching runs prove."""

from markupsafe import Markup

from detaudit.model import Confidence
from detaudit.report.html.charts import plot
from detaudit.report.html.charts.plot import HEIGHT, WIDTH, height_at
from detaudit.report.html.charts.scale import Scale
from detaudit.report.html.charts.svg import joined, percent, tag
from detaudit.report.messages import figures

_POINTS = 100


def proof(runs: int, found: Confidence) -> Markup:
    """Return how probably matching runs miss a difference, by the share of runs in which it shows up."""
    widest = min(1.0, max(0.2, 2 * found.max_differing_rate))
    scale = Scale(0.0, 1.0)
    points = [
        (place / _POINTS * WIDTH, height_at(scale, (1 - widest * place / _POINTS) ** (runs - 1)))
        for place in range(_POINTS + 1)
    ]
    at, y = found.max_differing_rate / widest, height_at(scale, 1 - found.level)
    texts = [
        tag("text", f"{share:.0%}", x=percent(share / widest), y=HEIGHT + 16, text_anchor="middle")
        for share in (0.0, widest / 2, widest)
    ]
    axis = [
        element
        for share in (0.0, 0.5, 1.0)
        for element in (
            tag("line", class_="gr", x1="0", x2="100%", y1=height_at(scale, share), y2=height_at(scale, share)),
            tag("text", f"{share:.0%}", x=-8, y=height_at(scale, share) + 4, text_anchor="end"),
        )
    ]
    label = figures.missed(found)
    mark = [
        tag("line", class_="ok", x1=percent(at), x2=percent(at), y1=y - 24, y2=HEIGHT),
        tag("text", label, class_="okl", x="100%", y=y - 30, text_anchor="end"),
    ]
    inside = joined((*axis, *texts, plot.stretched([plot.line(points, "k-A")]), *mark))
    return tag("svg", inside, class_="fig", width="100%", height=HEIGHT + 22, role="img", aria_label=label)
