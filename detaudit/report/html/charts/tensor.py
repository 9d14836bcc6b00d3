"""How far the elements of two tensors are apart, and in which part of the tensor they differ."""

from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup

from detaudit.model import TensorGrid
from detaudit.report.html.charts.svg import joined, percent, tag
from detaudit.report.messages import figures

ROW = 19
LEFT = 0.28
"""Where bars begin, right of their names."""

BAR = 40

CELL, LEAST, GREATEST = 5, 80, 320
"""The height of a part of the rows of a matrix, and the least and the greatest height of all."""

KEY = 12
SHADES = ("none", "≤ 20%", "≤ 40%", "≤ 60%", "≤ 80%", "≤ 100%")
"""What part of the elements differs, by shade."""

_STRETCHED = {"preserveAspectRatio": "none", "shape_rendering": "crispEdges"}


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
        shade = _shade(count, size)
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


def _shade(count: int, size: float) -> int:
    """Return how dark a part of a tensor is of which this many elements differ: from 0, none, to 5, all."""
    return min(5, -int(-5 * count // size)) if count else 0


def matrix(found: TensorGrid) -> Markup:
    """Return the rows and columns of a tensor in equal parts, the darker the more of their elements differ."""
    high, wide = len(found.counts), max(map(len, found.counts))
    paths: list[list[str]] = [[] for _ in SHADES]
    for y, row in enumerate(found.counts):
        lines = _size(found.rows, high, y)
        shades = [_shade(count, lines * _size(found.columns, wide, x)) for x, count in enumerate(row)]
        x = 0
        for shade, same in groupby(shades):
            width = len(list(same))
            paths[shade].append(f"M{x} {y}h{width}v1h-{width}z")
            x += width
    drawn = [tag("path", class_=f"s{shade}", d="".join(path)) for shade, path in enumerate(paths) if path]
    inside = tag("svg", joined(drawn), viewBox=f"0 0 {wide} {high}", width="100%", height="100%", **_STRETCHED)
    height = min(GREATEST, max(LEAST, CELL * high))
    return tag("svg", inside, class_="fig", width="100%", height=height, role="img", aria_label=figures.matrix(found))


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
