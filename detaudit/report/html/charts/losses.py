"""The losses of the runs of a group, and how far they are apart."""

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from detaudit.model.figures import Curve, Losses, Point
from detaudit.report.html.charts import plot
from detaudit.report.html.charts.plot import HEIGHT, TOP, WIDTH, height_at
from detaudit.report.html.charts.scale import Scale, fitting, logarithmic
from detaudit.report.html.charts.svg import joined, number, percent, tag
from detaudit.report.messages.figures import NOT_FINITE

BAND = 18
"""Height of the band at the bottom that shows where losses are bit-identical."""

Kinds = Mapping[int, str]
"""The class that colors the curve of a run, by the number of the run."""


def curves(found: Losses, kinds: Kinds, mark: str) -> Markup:
    """Return the losses by step. ``mark`` is written where they first differ."""
    values = [value for curve in found.curves for point in curve.points if point for value in _values(point)]
    if not values:
        return Markup()
    scale, places = fitting(values), plot.places(found.bins)
    shown, rest = _shown(found.curves)
    drawn = [_envelope(rest, places, scale)] if rest else []
    # The first run is drawn last, so that it lies above those that match it for a while.
    drawn += [plot.line(_path(curve, places, scale), kinds[curve.runs[0]]) for curve in reversed(shown)]
    return _figure(found, plot.grid(scale), drawn, _broken(found), mark)


def distances(found: Losses, kinds: Kinds, mark: str, equal: str) -> Markup:
    """Return how far the losses are from those of the first run, on a logarithmic scale; ``equal`` names the band."""
    apart = [curve for curve in found.curves if curve.distances]
    values = [one.greatest for curve in apart for one in curve.distances if one and one.greatest]
    if not apart:
        return Markup()
    scale = logarithmic(values) if values else Scale(0.1, 1.0, log=True)
    bottom, places = float(HEIGHT - BAND), plot.places(found.bins)
    shown, _ = _shown(apart)
    drawn = [tag("rect", class_="idn", x=0, y=bottom, width=WIDTH, height=BAND)]
    for row, curve in enumerate(shown):
        kind, y = kinds[curve.runs[0]], bottom + (row + 1) * BAND / (len(shown) + 1)
        far = [
            (x * WIDTH, height_at(scale, one.greatest, bottom)) if one and one.greatest else None
            for x, one in zip(places, curve.distances, strict=True)
        ]
        same = [(x * WIDTH, y) if one and one.equal else None for x, one in zip(places, curve.distances, strict=True)]
        drawn += [plot.line(far, kind), plot.line(same, kind)]
    broken = [
        any(one is not None and not one.equal and one.greatest is None for one in column)
        for column in zip(*(curve.distances for curve in apart), strict=True)
    ]
    label = tag("text", equal, x=-8, y=HEIGHT - 5, text_anchor="end")
    return _figure(found, joined((plot.grid(scale, bottom) if values else Markup(), label)), drawn, broken, mark)


def _figure(found: Losses, axis: Markup, drawn: Sequence[Markup], broken: Sequence[bool], mark: str) -> Markup:
    first = plot.mark(found.bins, found.first, mark) if found.first is not None else Markup()
    cursor = tag("line", class_="cur", x1="0", x2="0", y1=0, y2=HEIGHT)
    rail, name = _rail(broken, plot.places(found.bins))
    inside = joined((axis, plot.steps_axis(found.bins), plot.stretched([*drawn, rail]), name, first, cursor))
    return tag("svg", inside, class_="fig", width="100%", height=HEIGHT + 22, aria_hidden="true")


def _shown(found: Sequence[Curve]) -> tuple[Sequence[Curve], Sequence[Curve]]:
    """Return the curves to draw one by one, the first and then those of most runs, and the rest."""
    ordered = [*found[:1], *sorted(found[1:], key=lambda curve: -len(curve.runs))]
    return ordered[:7], ordered[7:]


def _values(point: Point) -> Iterator[float]:
    for value in (point.first, point.least, point.greatest, point.last):
        if value is not None:
            yield value


def _path(curve: Curve, places: Sequence[float], scale: Scale) -> Iterator[tuple[float, float] | None]:
    for x, point in zip(places, curve.points, strict=True):
        values = list(_values(point)) if point else []
        if not values:
            yield None
            continue
        for value in dict.fromkeys(values):
            yield x * WIDTH, height_at(scale, value)


def _envelope(found: Sequence[Curve], places: Sequence[float], scale: Scale) -> Markup:
    """Return the area in which the losses of these runs lie."""
    above, below = [], []
    for x, column in zip(places, zip(*(curve.points for curve in found), strict=True), strict=True):
        values = [value for point in column if point for value in _values(point)]
        if values:
            above.append(f"{number(x * WIDTH)} {number(height_at(scale, max(values)))}")
            below.append(f"{number(x * WIDTH)} {number(height_at(scale, min(values)))}")
    return tag("path", class_="env", d=f"M{'L'.join((*above, *reversed(below)))}Z" if above else "")


def _broken(found: Losses) -> list[bool]:
    columns = zip(*(curve.points for curve in found.curves), strict=True)
    return [any(point is not None and point.broken for point in column) for column in columns]


def _rail(broken: Sequence[bool], places: Sequence[float]) -> tuple[Markup, Markup]:
    """Return a line above the figure where a loss is NaN or infinite, and its name."""
    if not any(broken):
        return Markup(), Markup()
    points = [(x * WIDTH, TOP / 3) if bad else None for x, bad in zip(places, broken, strict=True)]
    end = max(x for x, bad in zip(places, broken, strict=True) if bad)
    name = tag(
        "text", NOT_FINITE, class_="nanl", x=percent(end), y=TOP + 6, text_anchor="end" if end > 0.3 else "start"
    )
    return plot.line(points, "nan"), name
