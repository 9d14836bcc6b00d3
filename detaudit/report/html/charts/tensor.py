"""How far the elements of two tensors are apart, and in which part of the tensor they differ."""

from collections.abc import Sequence

from markupsafe import Markup

from detaudit.report.html.charts.svg import joined, percent, tag
from detaudit.report.messages import figures

ROW = 19
LEFT = 0.28
"""Where bars begin, right of their names."""

BAR = 40


def ulps(found: Sequence[int], equal: int) -> Markup:
    """Return a bar for the elements that are equal, and one for each length of a distance in ulps."""
    rows = [
        (figures.EQUAL, equal, "bar same"),
        *((figures.ulps(n), count, "bar diff") for n, count in enumerate(found)),
    ]
    rows = [row for row in rows if row[1]]
    most = max(count for _, count, _ in rows)
    drawn = []
    for place, (name, count, kind) in enumerate(rows):
        y, width = place * ROW, max(0.004, (0.9 - LEFT) * count / most)
        drawn += [
            tag("text", name, x=percent(LEFT), dx=-8, y=y + 13, text_anchor="end"),
            tag("rect", class_=kind, x=percent(LEFT), width=percent(width), y=y + 2, height=ROW - 4),
            tag("text", f"{count:,}", class_="s", x=percent(LEFT + width), dx=6, y=y + 13),
        ]
    label = ", ".join(f"{name}: {count:,}" for name, count, _ in rows)
    return tag("svg", joined(drawn), class_="fig", width="100%", height=ROW * len(rows), role="img", aria_label=label)


def where(slices: Sequence[int], total: int) -> Markup:
    """Return a strip of equal parts of a tensor, the darker the more of their elements differ."""
    drawn, size = [], total / len(slices)
    for place, count in enumerate(slices):
        shade = min(5, -int(-5 * count // size)) if count else 0
        x = percent(place / len(slices))
        # A little wider than its part, so that nothing shines through between two.
        drawn.append(tag("rect", class_=f"s{shade}", x=x, width=percent(1.02 / len(slices)), y=0, height=BAR))
    ends = [
        tag("text", "0", x=0, y=BAR + 14),
        tag("text", f"{total - 1:,}", x="100%", y=BAR + 14, text_anchor="end"),
    ]
    inside = joined((*drawn, *ends))
    label = figures.where(slices)
    return tag("svg", inside, class_="fig", width="100%", height=BAR + 18, role="img", aria_label=label)
