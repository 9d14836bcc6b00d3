"""The frame of a plot over steps: its axes and marks. Curves stretch with the page; texts keep their size."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from detaudit.model.figures import Steps
from detaudit.report.html.charts.scale import Scale
from detaudit.report.html.charts.svg import joined, number, percent, tag

HEIGHT = 150
WIDTH = 1000
"""Of the coordinates of curves, which are stretched to the width of the figure."""

CLOSE = 8
TOP = 14
"""Room above the highest value, for the rail and the name of the mark."""


def places(bins: Sequence[Steps]) -> list[float]:
    """Return where the middle of each bin lies between the left (0) and the right (1)."""
    first, last = bins[0][0], bins[-1][1]
    if last == first:
        return [0.5] * len(bins)
    return [((start + end) / 2 - first) / (last - first) for start, end in bins]


def height_at(scale: Scale, value: float, bottom: float = HEIGHT) -> float:
    """Return the y coordinate of a value."""
    return bottom - scale.at(value) * (bottom - TOP)


def grid(scale: Scale, bottom: float = HEIGHT) -> Markup:
    """Return a line and a text for each value that is written at the axis."""
    drawn = []
    for value, text in scale.ticks:
        y = height_at(scale, value, bottom)
        drawn.append(tag("line", class_="gr", x1="0", x2="100%", y1=y, y2=y))
        if bottom == HEIGHT or y < bottom - CLOSE:  # what is written below the bottom is not written over
            drawn.append(tag("text", text, x=-8, y=y + 4, text_anchor="end"))
    return joined(drawn)


def steps_axis(bins: Sequence[Steps]) -> Markup:
    """Return the numbers of the first and the last step below the figure, and those of a few between them."""
    first, last = bins[0][0], bins[-1][1]
    shown = sorted({first, (first + last) // 2, last})
    anchors = {first: "start", last: "end"}
    span = max(1, last - first)
    return joined(
        tag(
            "text",
            f"step {step:,}" if step == first else f"{step:,}",
            x=percent((step - first) / span if last > first else 0.5),
            y=HEIGHT + 16,
            text_anchor=anchors.get(step, "middle") if last > first else "middle",
        )
        for step in shown
    )


def mark(bins: Sequence[Steps], step: int, text: str) -> Markup:
    """Return an upright line at a step, with a text beside it."""
    first, last = bins[0][0], bins[-1][1]
    share = min(1.0, max(0.0, (step - first) / (last - first))) if last > first else 0.5
    right = share < 0.5
    return joined(
        (
            tag("line", class_="mk", x1=percent(share), x2=percent(share), y1=0, y2=HEIGHT),
            tag(
                "text",
                text,
                class_="mkl",
                x=percent(share),
                y=9,
                dx=5 if right else -5,
                text_anchor="start" if right else "end",
            ),
        )
    )


def stretched(parts: Iterable[Markup]) -> Markup:
    """Return curves in their own coordinates, stretched to the figure."""
    box = f"0 0 {WIDTH} {HEIGHT}"
    return tag("svg", joined(parts), viewBox=box, width="100%", height=HEIGHT, preserveAspectRatio="none")


def line(points: Iterable[tuple[float, float] | None], kind: str) -> Markup:
    """Return a curve through points; None ends a part of it. A point alone is drawn as a short line."""
    parts: list[str] = []
    part: list[str] = []
    for point in (*points, None):
        if point is not None:
            part.append(f"{number(point[0])} {number(point[1])}")
        elif part:
            parts.append(f"M{'L'.join(part)}{'h2' if len(part) == 1 else ''}")
            part = []
    return tag("path", class_=f"ln {kind}", d="".join(parts))
