"""Charts as SVG."""

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup, escape

from detaudit.model import Confidence, TensorGrid
from detaudit.model.figures import Curve, Losses, Point, Steps
from detaudit.report import plain
from detaudit.report.html import captions
from detaudit.report.html.captions import NOT_FINITE

# Axes: where a value lies between the bottom (0) and the top (1) of a figure, and which values are written there.


MOST_TICKS = 4

LOG_FROM = 1000.0
"""Values over more than three powers of ten are shown on a logarithmic scale."""


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic axis from ``low`` to ``high``."""

    low: float
    high: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return where a value lies. One outside the axis lies at its end."""
        if self.log:
            value = max(value, self.low)
            fraction = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        else:
            span = self.high / 2 - self.low / 2  # which is finite, whatever the ends are
            fraction = (value / 2 - self.low / 2) / span if span else 0.5
        return min(1.0, max(0.0, fraction))

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The values to write at the axis, with their texts."""
        return _powers(self.low, self.high) if self.log else _round_values(self.low, self.high)


def linear(values: Sequence[float]) -> Scale:
    """Return an axis for finite values: from 0 if they begin near it, and never empty."""
    low, high = min(values), max(values)
    if 0 < low < high / 3:
        low = 0.0
    if not high - low > abs(high) * 1e-12:
        margin = abs(high) * 0.05 or 1.0
        low, high = max(low - margin, -sys.float_info.max), min(high + margin, sys.float_info.max)
    return Scale(low, high)


def logarithmic(values: Sequence[float]) -> Scale:
    """Return an axis for positive values between whole powers of ten."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    low = min(max(low, -307), 307)
    return Scale(10.0**low, 10.0 ** min(max(high, low + 1), 308), log=True)


def fitting(values: Sequence[float]) -> Scale:
    """Return a linear axis, or a logarithmic one if the values are positive and far apart."""
    if min(values) > 0 and max(values) / LOG_FROM > min(values):
        return logarithmic(values)
    return linear(values)


def _round_values(low: float, high: float) -> list[tuple[float, str]]:
    rough = high / MOST_TICKS - low / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = next((power * factor for factor in (1, 2, 5, 10) if power * factor >= rough), 0.0)
    if not step or not math.isfinite(high / step) or abs(high / step) > 1e12:
        return [(low, f"{low:.6g}"), (high, f"{high:.6g}")]
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(number * step, f"{number * step:.10g}") for number in range(first, last + 1)]


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _powers(low: float, high: float) -> list[tuple[float, str]]:
    first, last = round(math.log10(low)), round(math.log10(high))
    every = max(1, -(-(last - first) // MOST_TICKS))
    return [(10.0**power, _power(power)) for power in range(last, first - 1, -every)][::-1]


def _power(power: int) -> str:
    return {0: "1", 1: "10"}.get(power, "10" + str(power).translate(_RAISED))


# Elements of SVG, in which text is escaped and every number is finite.


def tag(name: str, *children: str, **attributes: str | float) -> Markup:
    """Return an element; ``class_`` stands for ``class``, and other underscores in names for hyphens."""
    written = [f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items()]
    inside = "".join(child if isinstance(child, Markup) else escape(plain.row(child)) for child in children)
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
    return escape(plain.row(value)) if isinstance(value, str) else number(value)


# What flags cost: the time of a training with a flag over that without it.


COST_ROW = 40


@dataclass(frozen=True)
class Cost:
    """What a flag costs: the median of so many ``pairs``, and its range; one not ``needed`` is an alternative."""

    flag: str
    cost: float
    ends: tuple[float, float]
    pairs: int
    needed: bool = True


def costs(flag_costs: Sequence[Cost]) -> Markup:
    """Return a row for each flag with its cost and the range of it; an alternative has an empty dot."""
    scale = linear([0.0, 1.0, *(end for one in flag_costs for end in one.ends), 1.5])
    height = COST_ROW * len(flag_costs)
    one = percent(0.9 * scale.at(1.0))
    drawn = [
        tag("line", class_="ax", x1=one, x2=one, y1=0, y2=height),
        tag("text", "1x", x=one, y=height + 14, text_anchor="middle"),
    ]
    for row, shown in enumerate(flag_costs):
        y, x = row * COST_ROW + 26, percent(0.9 * scale.at(shown.cost))
        least, most = (percent(0.9 * scale.at(end)) for end in shown.ends)
        drawn += [
            tag("text", shown.flag, class_="s", x=0, y=y - 12),
            tag("line", class_="ln", x1=least, x2=most, y1=y, y2=y),
            tag("circle", class_="dot" if shown.needed else "dot empty", cx=x, cy=y, r=4.5),
            tag("text", captions.cost(shown.cost, shown.ends, shown.pairs), x="100%", y=y - 12, text_anchor="end"),
        ]
    label = ", ".join(f"{one.flag} {captions.cost(one.cost, one.ends, one.pairs)}" for one in flag_costs)
    return tag("svg", joined(drawn), class_="fig", width="100%", height=height + 20, role="img", aria_label=label)


# The frame of a plot over steps: its axes and marks. Curves stretch with the page; texts keep their size.


PLOT_HEIGHT = 150
WIDTH = 1000
"""Of the coordinates of curves, which are stretched to the width of the figure."""

CLOSE = 8
TOP = 14
"""Room above the highest value, for the rail and the name of the mark."""


def mark_places(bins: Sequence[Steps]) -> list[float]:
    """Return where the middle of each bin lies between the left (0) and the right (1)."""
    first, last = bins[0][0], bins[-1][1]
    if last == first:
        return [0.5] * len(bins)
    return [((start + end) / 2 - first) / (last - first) for start, end in bins]


def height_at(scale: Scale, value: float, bottom: float = PLOT_HEIGHT) -> float:
    """Return the y coordinate of a value."""
    return bottom - scale.at(value) * (bottom - TOP)


def grid(scale: Scale, bottom: float = PLOT_HEIGHT) -> Markup:
    """Return a line and a text for each value that is written at the axis."""
    drawn = []
    for value, text in scale.ticks:
        y = height_at(scale, value, bottom)
        drawn.append(tag("line", class_="gr", x1="0", x2="100%", y1=y, y2=y))
        if bottom == PLOT_HEIGHT or y < bottom - CLOSE:  # what is written below the bottom is not written over
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
            y=PLOT_HEIGHT + 16,
            text_anchor=anchors.get(step, "middle") if last > first else "middle",
        )
        for step in shown
    )


def draw_mark(bins: Sequence[Steps], step: int, text: str) -> Markup:
    """Return an upright line at a step, with a text beside it."""
    first, last = bins[0][0], bins[-1][1]
    share = min(1.0, max(0.0, (step - first) / (last - first))) if last > first else 0.5
    right = share < 0.5
    return joined(
        (
            tag("line", class_="mk", x1=percent(share), x2=percent(share), y1=0, y2=PLOT_HEIGHT),
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
    box = f"0 0 {WIDTH} {PLOT_HEIGHT}"
    return tag("svg", joined(parts), viewBox=box, width="100%", height=PLOT_HEIGHT, preserveAspectRatio="none")


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


# The losses of the runs of a group, and how far they are apart.


BAND = 18
"""Height of the band at the bottom that shows where losses are bit-identical."""

Kinds = Mapping[int, str]
"""The class that colors the curve of a run, by the number of the run."""


def curves(losses: Losses, kinds: Kinds, mark: str) -> Markup:
    """Return the losses by step. ``mark`` is written where they first differ."""
    values = [value for curve in losses.curves for point in curve.points if point for value in _values(point)]
    if not values:
        return Markup()
    scale, places = fitting(values), mark_places(losses.bins)
    shown, rest = _shown(losses.curves)
    drawn = [_envelope(rest, places, scale)] if rest else []
    # The first run is drawn last, so that it lies above those that match it for a while.
    drawn += [line(_path(curve, places, scale), kinds[curve.runs[0]]) for curve in reversed(shown)]
    return _figure(losses, grid(scale), drawn, _broken(losses), mark)


def distances(losses: Losses, kinds: Kinds, mark: str, equal: str) -> Markup:
    """Return how far the losses are from those of the first run, on a logarithmic scale; ``equal`` names the band."""
    apart = [curve for curve in losses.curves if curve.distances]
    values = [one.greatest for curve in apart for one in curve.distances if one and one.greatest]
    if not apart:
        return Markup()
    scale = logarithmic(values) if values else Scale(0.1, 1.0, log=True)
    bottom, places = float(PLOT_HEIGHT - BAND), mark_places(losses.bins)
    shown, _ = _shown(apart)
    drawn = [tag("rect", class_="idn", x=0, y=bottom, width=WIDTH, height=BAND)]
    for row, curve in enumerate(shown):
        kind, y = kinds[curve.runs[0]], bottom + (row + 1) * BAND / (len(shown) + 1)
        far = [
            (x * WIDTH, height_at(scale, one.greatest, bottom)) if one and one.greatest else None
            for x, one in zip(places, curve.distances, strict=True)
        ]
        same = [(x * WIDTH, y) if one and one.equal else None for x, one in zip(places, curve.distances, strict=True)]
        drawn += [line(far, kind), line(same, kind)]
    broken = [
        any(one is not None and not one.equal and one.greatest is None for one in column)
        for column in zip(*(curve.distances for curve in apart), strict=True)
    ]
    label = tag("text", equal, x=-8, y=PLOT_HEIGHT - 5, text_anchor="end")
    return _figure(losses, joined((grid(scale, bottom) if values else Markup(), label)), drawn, broken, mark)


def _figure(losses: Losses, axis: Markup, drawn: Sequence[Markup], broken: Sequence[bool], mark: str) -> Markup:
    first = draw_mark(losses.bins, losses.first, mark) if losses.first is not None else Markup()
    cursor = tag("line", class_="cur", x1="0", x2="0", y1=0, y2=PLOT_HEIGHT)
    rail, name = _rail(broken, mark_places(losses.bins))
    inside = joined((axis, steps_axis(losses.bins), stretched([*drawn, rail]), name, first, cursor))
    return tag("svg", inside, class_="fig", width="100%", height=PLOT_HEIGHT + 22, aria_hidden="true")


def _shown(loss_curves: Sequence[Curve]) -> tuple[Sequence[Curve], Sequence[Curve]]:
    """Return the curves to draw one by one, the first and then those of most runs, and the rest."""
    ordered = [*loss_curves[:1], *sorted(loss_curves[1:], key=lambda curve: -len(curve.runs))]
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


def _envelope(loss_curves: Sequence[Curve], places: Sequence[float], scale: Scale) -> Markup:
    """Return the area in which the losses of these runs lie."""
    above, below = [], []
    for x, column in zip(places, zip(*(curve.points for curve in loss_curves), strict=True), strict=True):
        values = [value for point in column if point for value in _values(point)]
        if values:
            above.append(f"{number(x * WIDTH)} {number(height_at(scale, max(values)))}")
            below.append(f"{number(x * WIDTH)} {number(height_at(scale, min(values)))}")
    return tag("path", class_="env", d=f"M{'L'.join((*above, *reversed(below)))}Z" if above else "")


def _broken(losses: Losses) -> list[bool]:
    columns = zip(*(curve.points for curve in losses.curves), strict=True)
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
    return line(points, "nan"), name


# What a number of matching runs prove.


_POINTS = 100


def proof(runs: int, confidence: Confidence) -> Markup:
    """Return how probably matching runs miss a difference, by the share of runs in which it shows up."""
    widest = min(1.0, max(0.2, 2 * confidence.max_differing_rate))
    scale = Scale(0.0, 1.0)
    points = [
        (index / _POINTS * WIDTH, height_at(scale, (1 - widest * index / _POINTS) ** (runs - 1)))
        for index in range(_POINTS + 1)
    ]
    at, y = confidence.max_differing_rate / widest, height_at(scale, 1 - confidence.level)
    texts = [
        tag("text", f"{share:.0%}", x=percent(share / widest), y=PLOT_HEIGHT + 16, text_anchor="middle")
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
    label = captions.missed(confidence)
    mark = [
        tag("line", class_="ok", x1=percent(at), x2=percent(at), y1=y - 24, y2=PLOT_HEIGHT),
        tag("text", label, class_="okl", x="100%", y=y - 30, text_anchor="end"),
    ]
    inside = joined((*axis, *texts, stretched([line(points, "k-A")]), *mark))
    return tag("svg", inside, class_="fig", width="100%", height=PLOT_HEIGHT + 22, role="img", aria_label=label)


# A share as a bar. Its number stands beside it.


SHARE_HEIGHT = 14


def bar(share: float) -> Markup:
    """Return a bar of which this share, from 0 to 1, differs."""
    markup = tag("rect", class_="s0", x=0, width="100%", y=0, height=SHARE_HEIGHT)
    part = tag("rect", class_="bar diff", x=0, width=percent(min(1.0, max(0.0, share))), y=0, height=SHARE_HEIGHT)
    return tag("svg", joined((markup, part)), width="100%", height=SHARE_HEIGHT, aria_hidden="true")


# Values of several runs as dots on one line.


STRIP_HEIGHT = 30


def strip(values: Sequence[tuple[float, str]], scale: Scale, label: str) -> Markup:
    """Return a dot for each value with the class that colors it, on an axis that other strips share."""
    places = [0.02 + 0.96 * scale.at(value) for value, _ in values]
    line = tag(
        "line", class_="ax", x1=percent(min(places)), x2=percent(max(places)), y1=STRIP_HEIGHT / 2, y2=STRIP_HEIGHT / 2
    )
    dots = [
        tag("circle", class_=f"dot {kind}", cx=percent(position), cy=STRIP_HEIGHT / 2, r=4.5)
        for position, (_, kind) in zip(places, values, strict=True)
    ]
    return tag("svg", joined((line, *dots)), width="100%", height=STRIP_HEIGHT, role="img", aria_label=label)


def axis(scale: Scale) -> Markup:
    """Return the values that are written below the strips."""
    texts = [
        tag("text", text, x=percent(0.02 + 0.96 * scale.at(value)), y=12, text_anchor="middle")
        for value, text in scale.ticks
    ]
    return tag("svg", joined(texts), width="100%", height=16, aria_hidden="true")


# How far the elements of two tensors are apart, and in which part of the tensor they differ.


TENSOR_ROW = 19
LEFT = 0.28
"""Where bars begin, right of their names."""

TENSOR_BAR = 40

CELL, LEAST, GREATEST = 5, 80, 320
"""The height of a part of the rows of a matrix, and the least and the greatest height of all."""

KEY = 12
SHADES = ("none", "≤ 20%", "≤ 40%", "≤ 60%", "≤ 80%", "≤ 100%")
"""What part of the elements differs, by shade."""

_STRETCHED = {"preserveAspectRatio": "none", "shape_rendering": "crispEdges"}


def ulps(counts: Sequence[int], equal: int) -> Markup:
    """Return a bar for the elements that are equal, and one for each length of a distance in ulps."""
    rows = [
        (captions.EQUAL, equal, "bar same"),
        *((captions.ulps(n), count, "bar diff") for n, count in enumerate(counts)),
    ]
    rows = [row for row in rows if row[1]]
    most = max(count for _, count, _ in rows)
    drawn = []
    for index, (name, count, kind) in enumerate(rows):
        y, width = index * TENSOR_ROW, max(0.004, (0.9 - LEFT) * count / most)
        drawn += [
            tag("text", name, x=percent(LEFT), dx=-8, y=y + 13, text_anchor="end"),
            tag("rect", class_=kind, x=percent(LEFT), width=percent(width), y=y + 2, height=TENSOR_ROW - 4),
            tag("text", f"{count:,}", class_="s", x=percent(LEFT + width), dx=6, y=y + 13),
        ]
    label = ", ".join(f"{name}: {count:,}" for name, count, _ in rows)
    return tag(
        "svg", joined(drawn), class_="fig", width="100%", height=TENSOR_ROW * len(rows), role="img", aria_label=label
    )


def where(slices: Sequence[int], total: int) -> Markup:
    """Return a strip of equal parts of a tensor, the darker the more of their elements differ."""
    drawn, size = [], total / len(slices)
    for index, count in enumerate(slices):
        shade = _shade(count, size)
        x = percent(index / len(slices))
        # A little wider than its part, so that nothing shines through between two.
        drawn.append(tag("rect", class_=f"s{shade}", x=x, width=percent(1.02 / len(slices)), y=0, height=TENSOR_BAR))
    ends = [
        tag("text", "0", x=0, y=TENSOR_BAR + 14),
        tag("text", f"{total - 1:,}", x="100%", y=TENSOR_BAR + 14, text_anchor="end"),
    ]
    inside = joined((*drawn, *ends))
    label = captions.where(slices)
    return tag("svg", inside, class_="fig", width="100%", height=TENSOR_BAR + 18, role="img", aria_label=label)


def _shade(count: int, size: float) -> int:
    """Return how dark a part of a tensor is of which this many elements differ: from 0, none, to 5, all."""
    return min(5, -int(-5 * count // size)) if count else 0


def matrix(tensor_grid: TensorGrid) -> Markup:
    """Return the rows and columns of a tensor in equal parts, the darker the more of their elements differ."""
    high, wide = len(tensor_grid.counts), max(map(len, tensor_grid.counts))
    paths: list[list[str]] = [[] for _ in SHADES]
    for y, row in enumerate(tensor_grid.counts):
        lines = _size(tensor_grid.rows, high, y)
        shades = [_shade(count, lines * _size(tensor_grid.columns, wide, x)) for x, count in enumerate(row)]
        x = 0
        for shade, same in groupby(shades):
            width = len(list(same))
            paths[shade].append(f"M{x} {y}h{width}v1h-{width}z")
            x += width
    drawn = [tag("path", class_=f"s{shade}", d="".join(path)) for shade, path in enumerate(paths) if path]
    inside = tag("svg", joined(drawn), viewBox=f"0 0 {wide} {high}", width="100%", height="100%", **_STRETCHED)
    height = min(GREATEST, max(LEAST, CELL * high))
    return tag(
        "svg", inside, class_="fig", width="100%", height=height, role="img", aria_label=captions.matrix(tensor_grid)
    )


def _size(length: int, parts: int, part: int) -> int:
    """Return how many rows or columns are in a part of them."""
    return max(1, -(-(part + 1) * length // parts) + (-part * length // parts))


def key() -> Markup:
    """Return what the shades of a matrix stand for."""
    drawn = []
    for shade, share in enumerate(SHADES):
        x = percent(shade / len(SHADES))
        drawn.append(tag("rect", class_=f"s{shade}", x=x, width=percent(0.9 / len(SHADES)), y=0, height=KEY))
        drawn.append(tag("text", share, x=x, y=KEY + 13))
    return tag("svg", joined(drawn), class_="fig", width="100%", height=KEY + 18, aria_hidden="true")


# How long each run of a bisection took.


TIME_BAR = 26


def times(runs: Sequence[tuple[str, str, float]]) -> Markup:
    """Return a bar in which each run is as wide as it was long; ``runs`` has its trial, its class and its seconds."""
    total = sum(seconds for _, _, seconds in runs) or 1.0
    drawn, before, named = [], 0.0, ""
    for trial, kind, seconds in runs:
        x, width = before / total, max(0.0, seconds) / total
        drawn.append(tag("rect", class_=f"bar {kind}", x=percent(x), width=percent(width), y=0, height=TIME_BAR))
        if trial != named:
            drawn.append(tag("text", trial, x=percent(x), y=TIME_BAR + 14))
            named = trial
        before += seconds
    label = captions.times(len(runs), total)
    return tag("svg", joined(drawn), class_="fig", width="100%", height=TIME_BAR + 20, role="img", aria_label=label)
